import type { Entry } from '@sluice/schema'
import { tellFromLogFiles } from './log-files.ts'
import type { Random } from './random.ts'
import { makeMetadata, tellFromTemplates, type Told } from './templates.ts'

/** How far apart entries are by their own clocks, ms. */
const STEP_MS = 3

/** Makes entries that look like real ones. */
export class EntrySource {
  readonly #tell: (random: Random) => Told
  readonly #random: Random
  #timeMs: number

  private constructor(tell: (random: Random) => Told, random: Random, startMs: number) {
    this.#tell = tell
    this.#random = random
    this.#timeMs = startMs
  }

  /** @param corpus a folder of log files to take the messages from; without it they come from templates */
  static async open(corpus: string | undefined, random: Random, startMs: number): Promise<EntrySource> {
    const tell = corpus === undefined ? tellFromTemplates : await tellFromLogFiles(corpus)
    return new EntrySource(tell, random, startMs)
  }

  next(): Entry {
    this.#timeMs += this.#random.exponential(STEP_MS)
    return {
      ...this.#tell(this.#random),
      timestamp: new Date(this.#timeMs).toISOString(),
      environment: 'production',
      metadata: makeMetadata(this.#random),
    }
  }
}
