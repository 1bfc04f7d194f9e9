import { ClickHouseError, STILL_RUNNING, TokenWithoutRowsError } from './insert-errors.ts'

/** Far longer than a server takes from the record of a token to the rows. After it, an insert that began has succeeded or failed. */
export const SETTLE_MS = 2_000

/** What is to be stored exactly once. */
export interface InsertTarget<T> {
  readonly all: readonly T[]
  readonly token: string
  /** Whether an earlier process may have sent it. */
  readonly wasSent: boolean
  /** How many replacement tokens may be used. Each is needed only if the server crashes between the record of a token and its rows. */
  readonly replacementsMax: number
  /** Looks up which items ClickHouse does not have. */
  findMissing(): Promise<readonly T[]>
  insert(items: readonly T[], token: string): Promise<void>
  /** Whether ClickHouse certainly runs an insert with the token. */
  isRunning?(): Promise<boolean>
}

/** An earlier attempt is still running. Another one would only add to the load that makes it slow. */
export class StillRunningError extends Error {
  override name = 'StillRunningError'
}

export interface InsertOnceOptions {
  /** Called before each attempt. If it throws, nothing is looked up or sent. */
  readonly beforeAttempt: () => Promise<void>
  /** Whether ClickHouse records a token and its rows in one step, as replicated tables do. */
  readonly areTokensAtomic: boolean
  readonly sleep: (ms: number) => Promise<unknown>
  /** Called if ClickHouse has everything although it answered the last attempt with an error. */
  readonly onStoredDespiteError?: (error: ClickHouseError) => void
}

/**
 * Inserts something exactly once, however many attempts it takes, as invariant 10 of docs/exactly-once.md says. Each call of `run` is one
 * attempt. Calls must not overlap. Rows that are missing after an insert need another token: a replacement, or the tokens of their parts,
 * which is the decision of the caller.
 *
 * Never sent → (the first attempt inserts everything) → maybe stored → (each later attempt waits for those that are running, looks up
 * what is missing, and inserts that) → stored.
 */
export class InsertOnce<T> {
  readonly #target: InsertTarget<T>
  readonly #options: InsertOnceOptions
  #wasSent: boolean
  /** With which ClickHouse answered the last insert. */
  #error: ClickHouseError | undefined

  constructor(target: InsertTarget<T>, options: InsertOnceOptions) {
    this.#target = target
    this.#wasSent = target.wasSent
    this.#options = options
  }

  /**
   * Makes one attempt. Resolves when the items are stored.
   *
   * @throws what `beforeAttempt`, `findMissing` and `insert` throw, StillRunningError, and TokenWithoutRowsError
   */
  async run(): Promise<void> {
    await this.#options.beforeAttempt()
    if (this.#wasSent) return this.#insertMissing()
    this.#wasSent = true
    await this.#insert(this.#target.all, this.#target.token)
  }

  async #insert(items: readonly T[], token: string): Promise<void> {
    this.#error = undefined
    try {
      await this.#target.insert(items, token)
    } catch (error) {
      if (error instanceof ClickHouseError && error.code !== STILL_RUNNING) this.#error = error
      throw error
    }
  }

  async #insertMissing(): Promise<void> {
    const { areTokensAtomic, sleep, onStoredDespiteError } = this.#options
    const { token, replacementsMax } = this.#target
    if (await this.#target.isRunning?.()) throw new StillRunningError('wait for the earlier attempt')
    let missing = await this.#target.findMissing()
    if (missing.length === 0) {
      if (this.#error !== undefined) onStoredDespiteError?.(this.#error)
      return
    }
    await this.#insert(missing, token)
    // Another replica may lag: a lookup there would not find what was confirmed.
    if (areTokensAtomic) return
    for (let replacement = 1; ; replacement += 1) {
      if ((await this.#target.findMissing()).length === 0) return
      await sleep(SETTLE_MS)
      missing = await this.#target.findMissing()
      if (missing.length === 0) return
      if (replacement > replacementsMax) throw new TokenWithoutRowsError(token)
      await this.#insert(missing, `${token}/again/${replacement}`)
    }
  }
}

/** For items that cannot be inserted in parts. Items that are missing after these were deleted or hidden by an operator. */
export const REPLACEMENTS_MAX = 3
