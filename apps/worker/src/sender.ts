import type { Logger } from '@sluice/runtime'
import type { Inserter } from './inserter.ts'
import { framesWithout, type StoredRows } from './stored-rows.ts'

/**
 * So many other tokens are tried: each takes a server that dies at the wrong moment. What is not to be found after that
 * was hidden or removed by somebody, and would be doubled for ever.
 */
const AGAIN_MAX = 3
/** Far longer than a server needs from the note of a token to the rows: what it began is done after that, or never. */
const SETTLE_MS = 2_000

export interface SenderDependencies {
  readonly inserter: Pick<Inserter, 'insert'>
  readonly storedRows: Pick<StoredRows, 'find'>
  /** Whether a token is noted together with its rows, or not at all, as in replicated tables. */
  readonly areTokensAtomic: boolean
  readonly sleep: (ms: number) => Promise<unknown>
  readonly logger: Logger
}

/**
 * Brings rows into ClickHouse that may have been sent before.
 *
 * A token alone does not do. ClickHouse may have forgotten it, when others came in between. And a table that is not
 * replicated notes it before it commits the rows: if the server dies in between, every later insert with that token is
 * taken for one that it has, and the rows are nowhere. So what may have been sent is looked for: before it is sent, for
 * the first case; after it, for the second, and what is missing then is sent with another token.
 */
export class Sender {
  readonly #deps: SenderDependencies

  constructor(dependencies: SenderDependencies) {
    this.#deps = dependencies
  }

  /**
   * @param mayBeSent whether another process may have sent the rows
   * @returns a function of which each call is a try. It throws what `Inserter.insert` does.
   */
  tries(frames: readonly Buffer[], token: string, mayBeSent: boolean): () => Promise<void> {
    let isFirst = !mayBeSent
    return async () => {
      if (!isFirst) return this.#sendMissing(frames, token)
      isFirst = false
      await this.#deps.inserter.insert(frames, token)
    }
  }

  async #sendMissing(frames: readonly Buffer[], token: string): Promise<void> {
    const { inserter, areTokensAtomic, sleep, logger } = this.#deps
    let missing = await this.#missing(frames)
    if (missing.length === 0) return
    await inserter.insert(missing, token)
    if (areTokensAtomic) return
    for (let again = 1; again <= AGAIN_MAX; again += 1) {
      if ((await this.#missing(frames)).length === 0) return
      await sleep(SETTLE_MS)
      missing = await this.#missing(frames)
      if (missing.length === 0) return
      logger.warn(
        { token, again },
        'ClickHouse has the token of rows that it has not: sending them with another',
      )
      await inserter.insert(missing, `${token}/again/${again}`)
    }
  }

  async #missing(frames: readonly Buffer[]): Promise<Buffer[]> {
    return framesWithout(await this.#deps.storedRows.find(frames), frames)
  }
}
