import {
  ClickHouseError,
  classifyInsertError,
  describeError,
  type DeadLetter,
  type DeadLetters,
  inPortions,
  type InsertFailure,
  queryIds,
  REPLACEMENTS_MAX,
  type RowCheck,
  type RowInserter,
  SETTLE_MS,
  type Suspects,
  TokenWithoutRowsError,
} from '@sluice/clickhouse'
import type { BatchLedger, HeldChunk } from '@sluice/queue'
import { compressRows, rowAsJson, type RowKey, rowKey, rowsOfFrame } from '@sluice/rows'
import { type Logger, type MonotonicClock, withTimeout } from '@sluice/runtime'
import { hash } from 'node:crypto'
import type { BatchInRepair, Recovery, Stage } from './batch.ts'
import type { InsertHealth } from './insert-health.ts'
import { workerLimits } from './limits.ts'
import type { RejectedProjects } from './rejected-projects.ts'
import { isFinal, rejectionOf, type Retrier } from './retrier.ts'
import { HALVED, listName, listOf, rangeName, WHOLE_BATCH } from './split-names.ts'
import type { Emit } from './worker-events.ts'

export interface BatchSplitterDependencies {
  readonly ledger: Pick<BatchLedger, 'recordSplit'>
  readonly rowInserter: Pick<RowInserter, 'prepare' | 'send' | 'findStored'>
  readonly rowCheck: Pick<RowCheck, 'findSuspects'>
  readonly deadLetters: Pick<DeadLetters, 'prepare'>
  readonly rejectedProjects: Pick<RejectedProjects, 'note'>
  readonly retrier: Pick<Retrier, 'retry'>
  readonly health: Pick<InsertHealth, 'giveUpSignal' | 'hasSucceededSince'>
  readonly clock: MonotonicClock
  readonly events: Emit
  readonly logger: Logger
}

/**
 * Stored: all rows, some of them as dead letters. Confirmed: by another worker. Suspended: some rows are rejected, and it is too early to
 * dead-letter them. Waiting: a step failed at Redis or ClickHouse.
 */
export type PartsResult =
  | { readonly at: 'stored'; readonly deadLettered: number }
  | { readonly at: 'confirmed' }
  | Extract<Stage, { readonly at: 'suspended' | 'waiting' }>

/**
 * Rows that are tried to consume a token. If ClickHouse rejects all of them, the token stays unused, and an insert of the whole range
 * would be rejected because of them.
 */
const CONSUMING_ROWS_MAX = 16
/** Nested ranges whose tokens ClickHouse has without their rows. Each takes a server crash; more mean that lookups do not see the rows. */
const LOST_TOKENS_MAX = 3
/** If ClickHouse rejects this many single rows with an unknown code and accepts none, the cause is the table and not the rows. */
const SUSPECTS_MAX = 16
/** Rows that are looked up, dead-lettered and persisted together, which bounds a field of the batch's record to 4 kB. */
const ALONE_ROWS_MAX = 500
/** Single rows that are inserted at the same time. A rejected one costs ClickHouse about a millisecond, and mostly waits. */
const ALONE_IN_FLIGHT_MAX = 8
/** Rows per frame. */
const FRAME_ROWS_MAX = 2_000

/** Its partition is its day of expiry. */
interface Row extends RowKey {
  readonly index: number
  /** With its newline. */
  readonly text: string
}

type Rejection = Row & { readonly error: Error }

/** Another worker has confirmed the batch. Nothing more may be sent. */
class ConfirmedError extends Error {}

/**
 * One attempt to insert a batch in parts, because ClickHouse rejects it as a whole, or has its token without its rows: the steps of
 * invariant 5 of docs/exactly-once.md. Each range of rows and each row has its own token. So two workers that have the same batch insert
 * no row twice, for as long as ClickHouse remembers the tokens. A worker that was not aware of a split learns it when it confirms the
 * batch (`ChunkConsumer.finish`).
 */
export class BatchSplitter {
  readonly #deps: BatchSplitterDependencies
  readonly #batch: BatchInRepair
  readonly #recovery: Recovery
  readonly #startedMs: number
  /** Whether rows that are rejected with an unknown code are dead-lettered. */
  readonly #isLast: boolean
  /** The rows of all readable chunks. */
  readonly #rows: Row[] = []
  readonly #unreadable: HeldChunk[] = []
  /** What is persisted of the batch, as far as this worker knows: the ranges that are split, lists of rows, and `HALVED`. */
  readonly #splits = new Set<string>()
  /** Rows that are sent alone. No range contains them. */
  readonly #alone = new Set<Row>()
  /** Rows that ClickHouse has rejected. They are not sent. */
  readonly #rejected = new Set<Row>()
  /** The rows that ClickHouse seems to reject, by their ids, and the constraints that they violate. */
  #found: Suspects = new Map()
  /** Those of the constraints for which ClickHouse has rejected a row that was sent alone. */
  readonly #confirmed = new Set<ClickHouseError>()
  #unsettledUntilMs: number
  /** Rows that were rejected with an unknown code. */
  #suspects = 0
  /** Rejected rows and ranges of such rows whose earlier attempts may still commit. */
  #unsettled = 0
  /** Rows that are dead letters, also from earlier attempts: each attempt goes through all rows. */
  #deadLettered = 0

  constructor(dependencies: BatchSplitterDependencies, batch: BatchInRepair, recovery: Recovery) {
    const { clock, health } = dependencies
    const { suspension } = recovery
    this.#deps = dependencies
    this.#batch = batch
    this.#recovery = recovery
    this.#unsettledUntilMs = recovery.unsettledUntilMs
    this.#startedMs = clock.nowMs()
    // If ClickHouse has accepted no row since the last attempt, the cause may be the table.
    this.#isLast =
      suspension !== undefined &&
      this.#startedMs - suspension.firstMs >= workerLimits.unknownRejectionMs &&
      health.hasSucceededSince(suspension.lastMs)
    for (const chunk of batch.chunks) {
      const texts = rowsOfFrame(chunk.frame)
      if (texts === undefined) this.#unreadable.push(chunk)
      for (const text of texts ?? []) this.#rows.push({ index: this.#rows.length, text, ...rowKey(text) })
    }
    for (const name of batch.splits) this.#learn(name)
  }

  /** @throws RequeueError, TokenWithoutRowsError, and errors of Redis */
  async run(): Promise<PartsResult> {
    const recovery = (): Recovery => ({ ...this.#recovery, unsettledUntilMs: this.#unsettledUntilMs })
    try {
      await this.#insertAll()
    } catch (error) {
      if (error instanceof ConfirmedError) return { at: 'confirmed' }
      if (isFinal(error)) throw error
      const fields = { batchId: this.#batch.id, reason: describeError(error) }
      this.#deps.logger.warn(fields, 'batch not inserted by parts')
      return { at: 'waiting', recovery: recovery() }
    }
    if (this.#suspects + this.#unsettled === 0) return { at: 'stored', deadLettered: this.#deadLettered }
    const [firstMs, lastMs] = [this.#recovery.suspension?.firstMs ?? this.#startedMs, this.#startedMs]
    return { at: 'suspended', recovery: { ...recovery(), suspension: { firstMs, lastMs } } }
  }

  async #insertAll(): Promise<void> {
    const { id, splits } = this.#batch
    await this.#persist(WHOLE_BATCH)
    for (const chunk of this.#unreadable)
      await this.#deadLetter([unreadableChunk(chunk)], `${id}/chunk/${chunk.id}`, true, chunk.rows)
    for (const name of splits) {
      const rows = this.#listOf('rejected', name)
      if (rows.length > 0) await this.#deadLetter(rows.map(earlierRejectedRow), this.#tokenOfList(name), true)
    }
    const rows = this.#rows.filter((row) => !this.#rejected.has(row))
    // Rows of other projects wait for both answers.
    const [missing, suspects] = await Promise.all([this.#findMissing(rows), this.#findSuspects(rows)])
    if (missing.length > 0) await this.#insertMissing(missing, suspects)
    else if (splits.size === 0) this.#reportStored(this.#recovery.rejection)
  }

  async #insertMissing(missing: readonly Row[], suspects: ReadonlySet<Row>): Promise<void> {
    const { id } = this.#batch
    const accepted = missing.filter((row) => !suspects.has(row))
    const rejected = missing.filter((row) => suspects.has(row))
    // Without suspects, ClickHouse has just rejected all of them.
    const isTried = rejected.length > 0 && accepted.length > 0
    const rejection = isTried ? await this.#send(id, accepted, queryIds.consumedToken(id)) : undefined
    const done = new Set(isTried && !rejection ? accepted.map(({ expiresOn }) => expiresOn) : [])
    const left = [...accepted, ...rejected].filter(({ expiresOn }) => !done.has(expiresOn))
    if (!(await this.#consumeToken(id, left))) return
    for (const group of inPortions(
      rejected.filter((row) => !this.#alone.has(row)),
      ALONE_ROWS_MAX,
    ))
      await this.#persist(listName('alone', group))
    let others = accepted
    if (rejected.length > 0) {
      others = await this.#findMissing(accepted)
      // An insert that ClickHouse has just found to be a copy may be followed by the rows of the original.
      if (others.length > 0) await this.#deps.clock.sleep(SETTLE_MS)
      others = await this.#findMissing(others)
    }
    if (others.length > 0) {
      await this.#persist(HALVED)
      await this.#insertHalves(0, this.#rows.length, 0)
    } else this.#reportStored(rejection)
    for (const group of inPortions([...this.#alone], ALONE_ROWS_MAX)) await this.#insertAlone(group)
  }

  /** @param rejection the error with which ClickHouse has answered an insert of rows that are all stored */
  #reportStored(rejection: Error | undefined): void {
    if (rejection instanceof ClickHouseError) this.#deps.events.emit('stored despite error', rejection)
  }

  /**
   * The rows that are sent alone, and those that ClickHouse seems to reject. Once halves may be in flight, there are none of the latter: a
   * half may contain them.
   */
  async #findSuspects(rows: readonly Row[]): Promise<ReadonlySet<Row>> {
    const { rowCheck, logger } = this.#deps
    const checked = this.#splits.has(HALVED) ? rows.filter((row) => this.#alone.has(row)) : rows
    if (checked.length < 2) return this.#alone
    try {
      this.#found = await rowCheck.findSuspects(checked.map(({ text }) => text))
    } catch (error) {
      const fields = { batchId: this.#batch.id, reason: describeError(error) }
      logger.warn(fields, 'rejected rows not found by a query')
    }
    return new Set([...this.#alone, ...checked.filter(({ id }) => this.#found.has(id))])
  }

  /** Inserts the halves of a range that is persisted as split, and whose token is consumed. */
  async #insertHalves(from: number, to: number, lostTokens: number): Promise<void> {
    const middle = from + Math.floor((to - from) / 2)
    await this.#insertRange(from, middle, lostTokens)
    await this.#insertRange(middle, to, lostTokens)
  }

  /** @param lostTokens how many of the ranges around it had a token without rows */
  async #insertRange(from: number, to: number, lostTokens: number): Promise<void> {
    const rows = this.#rows.slice(from, to).filter((row) => !this.#rejected.has(row) && !this.#alone.has(row))
    const [row] = rows
    if (this.#isHopeless || row === undefined) return
    if (to - from === 1) return this.#insertRow(row)
    const range = rangeName(from, to)
    const token = `${this.#batch.id}/${range}`
    let lost = lostTokens
    if (!this.#splits.has(range)) {
      const insert = this.#deps.rowInserter.prepare(framesOf(rows), token, true, this.#onUnanswered)
      const rejection = await this.#attempt(() => insert.run())
      if (rejection === undefined) return
      if (rejection instanceof TokenWithoutRowsError) lost += 1
      if (lost > LOST_TOKENS_MAX) throw rejection
      await this.#persist(range)
    }
    if (await this.#consumeToken(token, await this.#findMissing(rows)))
      await this.#insertHalves(from, to, lost)
  }

  async #insertRow(row: Row): Promise<void> {
    const { rowInserter } = this.#deps
    const [frames, token] = [framesOf([row]), this.#tokenOfRow(row)]
    const insert = rowInserter.prepare(frames, token, true, this.#onUnanswered, REPLACEMENTS_MAX)
    const error = await this.#attempt(() => insert.run(), isAboutRows)
    // If a materialized view fails, ClickHouse reports an error after it has stored the row.
    if (error !== undefined && (await this.#findMissing([row])).length > 0)
      await this.#reject([{ ...row, error }])
  }

  /**
   * Inserts rows alone that are persisted as such. Of the rows that violate one constraint, as ClickHouse has evaluated it, one is sent. If
   * ClickHouse rejects that one, it need not reject each of the others.
   */
  async #insertAlone(group: readonly Row[]): Promise<void> {
    const missing = await this.#findMissing(group.filter((row) => !this.#rejected.has(row)))
    const errors = new Map<Row, Error | undefined>()
    for (const [constraint, [first, ...others]] of Map.groupBy(missing, ({ id }) => this.#found.get(id))) {
      if (constraint === undefined || first === undefined) continue
      if (this.#confirmed.has(constraint)) errors.set(first, constraint)
      else await this.#insertEach([first], errors)
      const error = errors.get(first)
      if (!(error instanceof ClickHouseError) || error.code !== constraint.code) continue
      this.#confirmed.add(constraint)
      for (const row of others) errors.set(row, constraint)
    }
    await this.#insertEach(
      missing.filter((row) => !errors.has(row)),
      errors,
    )
    const rejections: Rejection[] = []
    for (const row of await this.#findMissing([...errors.keys()])) {
      const error = errors.get(row)
      // ClickHouse has the token of the row without the row.
      if (error === undefined) await this.#insertRow(row)
      else rejections.push({ ...row, error })
    }
    await this.#reject(rejections)
  }

  /** Inserts each of the rows alone. @param errors receives the error of each row that was sent, or undefined */
  async #insertEach(rows: readonly Row[], errors: Map<Row, Error | undefined>): Promise<void> {
    const waiting = rows.values()
    const insertNext = async (): Promise<void> => {
      for (const row of waiting) {
        if (this.#isHopeless) return
        errors.set(row, await this.#send(this.#tokenOfRow(row), [row]))
      }
    }
    await Promise.all(Array.from({ length: ALONE_IN_FLIGHT_MAX }, insertNext))
  }

  /**
   * Dead-letters rejected rows, except for those for which it is too early. First they are persisted as rejected, so that no worker tries to
   * insert them again, even if the table is changed.
   */
  async #reject(rejections: readonly Rejection[]): Promise<void> {
    this.#deps.rejectedProjects.note(rejections)
    const isSettled = this.#deps.clock.nowMs() >= this.#unsettledUntilMs
    const final: Rejection[] = []
    for (const rejection of rejections) {
      const isKnown = classifyInsertError(rejection.error).failure === 'poison'
      if (!isKnown && !this.#isLast) this.#suspects += 1
      else if (!isSettled) this.#unsettled += 1
      else final.push(rejection)
    }
    if (final.length === 0) return
    const name = listName('rejected', final)
    await this.#persist(name)
    await this.#deadLetter(final.map(rejectedRow), this.#tokenOfList(name), false)
  }

  get #isHopeless(): boolean {
    return this.#suspects >= SUSPECTS_MAX && !this.#deps.health.hasSucceededSince(this.#startedMs)
  }

  /**
   * Consumes a token in each partition of rows that are not stored. Only such rows may be used: ClickHouse may have forgotten that the
   * token was consumed earlier.
   *
   * @returns whether the parts may be sent: the token is consumed, or cannot be used because its rows are rejected for good
   */
  async #consumeToken(token: string, missing: readonly Row[]): Promise<boolean> {
    let isCertain = true
    for (const rows of Map.groupBy(missing, ({ expiresOn }) => expiresOn).values())
      isCertain = (await this.#consumeIn(token, rows)) && isCertain
    return isCertain
  }

  /**
   * Consumes a token with the first row of a partition that ClickHouse accepts. If it rejects them, the cause may pass: with an unknown code
   * by itself, otherwise if an operator changes the table. Then another attempt with this token could insert a row whose part may be in
   * flight as well.
   */
  async #consumeIn(token: string, rows: readonly Row[]): Promise<boolean> {
    let hasSuspects = false
    for (const row of rows.slice(0, CONSUMING_ROWS_MAX)) {
      const rejection = await this.#send(token, [row], queryIds.consumedToken(token))
      if (rejection === undefined) {
        // The query is wrong about this row, or the table was changed since.
        if (this.#found.has(row.id)) this.#found = new Map()
        return true
      }
      hasSuspects ||= classifyInsertError(rejection).failure === 'unknown'
    }
    if (hasSuspects && !this.#isLast) this.#suspects += 1
    // If the table is changed meanwhile, an earlier attempt could still insert a row whose part is sent now.
    else if (this.#deps.clock.nowMs() < this.#unsettledUntilMs) this.#unsettled += 1
    else return true
    return false
  }

  /**
   * Sends rows once. An insert of some rows of a range with the token of the range consumes it: from then on, ClickHouse ignores every other
   * insert with this token in the partitions of these rows. If it has the token already, it inserts nothing.
   */
  #send(token: string, rows: readonly Row[], queryId?: string): Promise<Error | undefined> {
    const frames = framesOf(rows)
    const send = (): Promise<void> => this.#deps.rowInserter.send(frames, token, this.#onUnanswered, queryId)
    // A single row is never too big.
    return this.#attempt(send, rows.length === 1 ? isAboutRows : undefined)
  }

  /** @returns those of the rows that are not stored */
  async #findMissing(rows: readonly Row[]): Promise<Row[]> {
    if (rows.length === 0) return []
    const find = () => this.#deps.rowInserter.findStored(rows)
    const stored = await this.#retry('stored rows not looked up', find)
    return rows.filter(({ id }) => !stored.has(id))
  }

  /** An attempt without a response may still commit, unless its token is consumed. The token of a rejected row cannot be consumed. */
  readonly #onUnanswered = (): void => {
    this.#unsettledUntilMs = this.#deps.clock.nowMs() + workerLimits.insertLingerMaxMs
  }

  #attempt(
    run: () => Promise<void>,
    isRejection?: (failure: InsertFailure) => boolean,
  ): Promise<Error | undefined> {
    return this.#retry('part of a batch not inserted', () => rejectionOf(run, isRejection))
  }

  #retry<T>(failureMessage: string, run: () => Promise<T>): Promise<T> {
    const { retrier, health } = this.#deps
    return retrier.retry(failureMessage, run, () => health.giveUpSignal)
  }

  /** @throws ConfirmedError */
  async #persist(name: string): Promise<void> {
    const { ledger, clock, events } = this.#deps
    const { id, repair } = this.#batch
    const recording = ledger.recordSplit(id, name, repair)
    if (!(await withTimeout(recording, workerLimits.repairStepMaxMs, clock))) throw new ConfirmedError()
    if (!this.#splits.has(name)) events.emit('range split')
    this.#learn(name)
  }

  /** Notes that something is persisted. */
  #learn(name: string): void {
    this.#splits.add(name)
    for (const row of this.#listOf('alone', name)) this.#alone.add(row)
    for (const row of this.#listOf('rejected', name)) this.#rejected.add(row)
  }

  #listOf(list: 'alone' | 'rejected', name: string): Row[] {
    return (listOf(list, name) ?? []).flatMap((index) => this.#rows[index] ?? [])
  }

  #tokenOfRow({ index }: Row): string {
    return `${this.#batch.id}/${rangeName(index, index + 1)}`
  }

  /** A token is part of a URL. */
  #tokenOfList(name: string): string {
    return `${this.#batch.id}/${name.length > 40 ? hash('sha256', name) : name}`
  }

  /**
   * @param wasSent whether another repair may have stored the letters
   * @param rows how many rows the letters are for
   */
  async #deadLetter(
    letters: readonly DeadLetter[],
    token: string,
    wasSent: boolean,
    rows = letters.length,
  ): Promise<void> {
    const insert = this.#deps.deadLetters.prepare(letters, token, wasSent)
    await this.#retry('dead letters not stored', () => insert.run())
    this.#deadLettered += rows
    for (const [code, { length }] of Map.groupBy(letters, (letter) => letter.code))
      this.#deps.logger.error({ code, token, letters: length }, 'rows dead-lettered')
  }
}

function framesOf(rows: readonly Row[]): Buffer[] {
  return Array.from(inPortions(rows, FRAME_ROWS_MAX), (portion) =>
    compressRows(portion.map(({ text }) => text).join('')),
  )
}

function isAboutRows(failure: InsertFailure): boolean {
  return failure === 'poison' || failure === 'unknown'
}

function unreadableChunk({ frame }: HeldChunk): DeadLetter {
  const reason = 'the frame cannot be read'
  return { code: 'UNREADABLE_CHUNK', reason, text: frame.toString('base64') }
}

function rejectedRow({ error, ...row }: Rejection): DeadLetter {
  return { code: classifyInsertError(error).code, reason: error.message, text: textOf(row) }
}

/** The letter of a row that is persisted as rejected. It is stored already, unless the worker that knew the reason died before that. */
function earlierRejectedRow(row: Row): DeadLetter {
  return { code: 'REJECTED', reason: 'only the worker that died knew the reason', text: textOf(row) }
}

function textOf({ text }: Row): string {
  return rowAsJson(text) ?? text.trimEnd()
}
