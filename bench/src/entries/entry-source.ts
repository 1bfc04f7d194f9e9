import type { Random } from '@sluice/harness/random'
import type { Entry } from '@sluice/schema'
import { exponential } from './distributions.ts'
import { contentFromTemplates, makeMetadata } from './templates.ts'

/** Mean difference between the timestamps of consecutive entries. */
const GAP_MS = 3

/** Generates realistic entries. */
export class EntrySource {
  readonly #random: Random
  #timeMs: number

  constructor(random: Random, startMs: number) {
    this.#random = random
    this.#timeMs = startMs
  }

  next(): Entry {
    this.#timeMs += exponential(this.#random, GAP_MS)
    return {
      ...contentFromTemplates(this.#random),
      timestamp: new Date(this.#timeMs).toISOString(),
      environment: 'production',
      metadata: makeMetadata(this.#random),
    }
  }
}
