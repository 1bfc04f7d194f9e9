import type { Random } from '@sluice/harness/random'
import type { Entry } from '@sluice/schema'
import { exponential } from './distributions.ts'
import { contentFromLogFiles } from './log-files.ts'
import { contentFromTemplates, type ContentSource, makeMetadata } from './templates.ts'

/** Mean difference between the timestamps of consecutive entries. */
const GAP_MS = 3

/** Generates realistic entries. */
export class EntrySource {
  readonly #nextContent: ContentSource
  readonly #random: Random
  #timeMs: number

  private constructor(nextContent: ContentSource, random: Random, startMs: number) {
    this.#nextContent = nextContent
    this.#random = random
    this.#timeMs = startMs
  }

  /** @param corpus a folder of log files that supply the messages. Without it they are generated from templates */
  static async open(corpus: string | undefined, random: Random, startMs: number): Promise<EntrySource> {
    const nextContent = corpus === undefined ? contentFromTemplates : await contentFromLogFiles(corpus)
    return new EntrySource(nextContent, random, startMs)
  }

  next(): Entry {
    this.#timeMs += exponential(this.#random, GAP_MS)
    return {
      ...this.#nextContent(this.#random),
      timestamp: new Date(this.#timeMs).toISOString(),
      environment: 'production',
      metadata: makeMetadata(this.#random),
    }
  }
}
