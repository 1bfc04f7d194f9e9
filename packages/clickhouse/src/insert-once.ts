/**
 * How many replacement tokens are used at most. Each is needed only if the server crashes between the record of a token and its
 * rows. Rows that are still missing afterwards were deleted or hidden, and would be duplicated without end.
 */
const REPLACEMENTS_MAX = 3
/** Far longer than a server takes from the record of a token to the rows. After it, an insert that began has succeeded or failed. */
const SETTLE_MS = 2_000

/** What is to be stored exactly once. */
export interface InsertTarget<T> {
  readonly all: readonly T[]
  /** Looks up which items ClickHouse does not have. */
  findMissing(): Promise<readonly T[]>
  insert(items: readonly T[], token: string): Promise<void>
}

export interface InsertOnceOptions {
  /** Whether ClickHouse records a token and its rows in one step, as replicated tables do. */
  readonly areTokensAtomic: boolean
  readonly sleep: (ms: number) => Promise<unknown>
  /** Called when ClickHouse has a token but not its rows, before they are sent with the replacement token. */
  readonly onTokenWithoutRows: (token: string, replacement: number) => void
}

/**
 * Inserts something exactly once, however many attempts it takes. Each call of `run` is one attempt. Calls must not overlap.
 *
 * Never sent → (the first attempt inserts everything) → maybe stored → (each later attempt looks up what is missing, and inserts
 * that) → stored.
 *
 * A deduplication token alone is not enough. ClickHouse may have forgotten it, because too many other inserts came in between.
 * And a table that is not replicated records the token before it commits the rows: if the server crashes in between, it ignores
 * every later insert with that token, and the rows do not exist. Therefore the rows are looked up before they are sent again,
 * for the first case, and after it, for the second. Rows that are missing then are sent with a replacement token.
 */
export class InsertOnce<T> {
  readonly #target: InsertTarget<T>
  readonly #token: string
  readonly #options: InsertOnceOptions
  #wasSent: boolean

  /** @param wasSent whether an earlier process may have sent it */
  constructor(target: InsertTarget<T>, token: string, wasSent: boolean, options: InsertOnceOptions) {
    this.#target = target
    this.#token = token
    this.#wasSent = wasSent
    this.#options = options
  }

  /**
   * Makes one attempt.
   *
   * @returns false if ClickHouse confirmed the items under every token, but a lookup does not find them
   * @throws what `findMissing` and `insert` throw
   */
  async run(): Promise<boolean> {
    if (this.#wasSent) return this.#insertMissing()
    this.#wasSent = true
    await this.#target.insert(this.#target.all, this.#token)
    return true
  }

  async #insertMissing(): Promise<boolean> {
    const { areTokensAtomic, sleep, onTokenWithoutRows } = this.#options
    let missing = await this.#target.findMissing()
    if (missing.length === 0) return true
    await this.#target.insert(missing, this.#token)
    // Another replica may lag: a lookup there would not find what was confirmed.
    if (areTokensAtomic) return true
    for (let replacement = 1; replacement <= REPLACEMENTS_MAX; replacement += 1) {
      if ((await this.#target.findMissing()).length === 0) return true
      await sleep(SETTLE_MS)
      missing = await this.#target.findMissing()
      if (missing.length === 0) return true
      onTokenWithoutRows(this.#token, replacement)
      await this.#target.insert(missing, `${this.#token}/again/${replacement}`)
    }
    return (await this.#target.findMissing()).length === 0
  }
}
