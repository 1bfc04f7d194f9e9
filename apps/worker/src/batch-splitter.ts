import {
  ClickHouseError,
  classifyInsertError,
  describeError,
  type DeadLetter,
  type DeadLetters,
  type InsertFailure,
  type InsertResult,
  type RowCheck,
  type RowInserter,
  SETTLE_MS,
} from '@sluice/clickhouse'
import type { BatchLedger, HeldChunk } from '@sluice/queue'
import { compressRows, rowAsJson, rowKey, rowsOfFrame } from '@sluice/rows'
import { type Logger, type MonotonicClock, withTimeout } from '@sluice/runtime'
import { hash } from 'node:crypto'
import type { BatchInRepair, EarlierAttempts } from './batch.ts'
import type { InsertHealth } from './insert-health.ts'
import { workerLimits } from './limits.ts'
import { type AttemptResult, attemptInsert, isFinal, type Retrier, UndeliverableError } from './retrier.ts'
import { HALVED, listName, listOf, rangeName, SplitPass, WHOLE_BATCH } from './split-pass.ts'
import type { Emit } from './worker-events.ts'

export interface BatchSplitterDependencies {
  readonly ledger: Pick<BatchLedger, 'recordSplit'>
  readonly rowInserter: Pick<
    RowInserter,
    'prepare' | 'prepareSingle' | 'insertSingle' | 'consumeToken' | 'findStored'
  >
  readonly rowCheck: Pick<RowCheck, 'findSuspects'>
  readonly deadLetters: Pick<DeadLetters, 'prepare'>
  readonly retrier: Pick<Retrier, 'retry'>
  readonly health: Pick<InsertHealth, 'giveUpSignal' | 'hasSucceededSince'>
  readonly clock: MonotonicClock
  readonly events: Emit
  readonly logger: Logger
  /** How long after its failure an attempt to insert a single row may still commit, ms. */
  readonly insertLingerMaxMs: number
}

/** The end of an attempt to insert a batch in parts. */
export type PartsResult =
  /** All rows are stored, this many of them as dead letters. `wasStored`: they all were before anything was sent. */
  | { readonly at: 'stored'; readonly deadLettered: number; readonly wasStored: boolean }
  /** Another worker has confirmed the batch. Nothing was sent. */
  | { readonly at: 'confirmed' }
  /** Some rows are rejected and cannot be dead-lettered yet. Unless ClickHouse accepts no rows at all, the other rows are stored. */
  | { readonly at: 'suspended'; readonly earlier: EarlierAttempts }
  /** A step failed at Redis or ClickHouse. */
  | { readonly at: 'failed'; readonly earlier: EarlierAttempts }

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

/**
 * Inserts a batch in parts, because ClickHouse rejects it as a whole, or has its token without its rows.
 *
 * 1. The batch is persisted as split: from then on, no worker starts to send it as a whole.
 * 2. Its token is consumed: from then on, an insert of the whole batch that is still in flight, of this worker or of another one, changes
 *    nothing, however late it arrives. What consumes it are all rows that ClickHouse seems to accept (`RowCheck`), or else one row per
 *    partition.
 * 3. The rows that it seems to reject are persisted as rows that are sent alone, and are sent alone. Those that it rejects are persisted
 *    as rejected, and dead-lettered.
 * 4. If other rows are missing, `RowCheck` was wrong. They are halved until each rejected row is alone.
 *
 * Each range of rows and each row has its own token. Before the halves of a range are sent, the range is persisted as split, its token is
 * consumed in each partition, and the rows of each half are looked up. So two workers that have the same batch insert no row twice, for as
 * long as ClickHouse remembers the tokens. A worker that was not aware of a split learns it when it confirms the batch
 * (`ChunkConsumer.finish`).
 */
export class BatchSplitter {
  readonly #deps: BatchSplitterDependencies

  constructor(dependencies: BatchSplitterDependencies) {
    this.#deps = dependencies
  }

  /** @throws UndeliverableError, RequeueError, and errors of Redis */
  async insertByParts(batch: BatchInRepair, earlier: EarlierAttempts): Promise<PartsResult> {
    const { clock, logger, health } = this.#deps
    const startedMs = clock.nowMs()
    const { unsettledUntilMs, suspension } = earlier
    // If ClickHouse has accepted no row since the last attempt, the cause may be the table.
    const isLast =
      suspension !== undefined &&
      startedMs - suspension.firstMs >= workerLimits.unknownRejectionMs &&
      health.hasSucceededSince(suspension.lastMs)
    const pass = new SplitPass(batch, startedMs, unsettledUntilMs, isLast)
    try {
      if (!(await this.#insertAll(pass, batch))) return { at: 'confirmed' }
    } catch (error) {
      if (isFinal(error)) throw error
      logger.warn({ batchId: batch.id, reason: describeError(error) }, 'batch not inserted by parts')
      return { at: 'failed', earlier: { ...earlier, unsettledUntilMs: pass.unsettledUntilMs } }
    }
    return pass.suspects + pass.unsettled > 0
      ? { at: 'suspended', earlier: pass.earlier(suspension) }
      : { at: 'stored', deadLettered: pass.deadLettered, wasStored: pass.wasStored }
  }

  /** @returns false if another worker has confirmed the batch */
  async #insertAll(pass: SplitPass, { chunks }: BatchInRepair): Promise<boolean> {
    const earlierRejections = pass.rejections
    if (!(await this.#persist(pass, WHOLE_BATCH))) return false
    for (const chunk of chunks) {
      const rows = rowsOfFrame(chunk.frame)
      if (rows !== undefined) pass.rows.push(...rows)
      else
        await this.#deadLetter(
          pass,
          [unreadableChunk(chunk)],
          `${pass.id}/chunk/${chunk.id}`,
          true,
          chunk.rows,
        )
    }
    for (const name of earlierRejections) {
      const letters = (listOf('rejected', name) ?? []).map((index) => earlierRejectedRow(pass.row(index)))
      await this.#deadLetter(pass, letters, tokenOfList(pass, name), true)
    }
    if (pass.rows.length > 0) await this.#splitWhole(pass)
    return true
  }

  async #splitWhole(pass: SplitPass): Promise<void> {
    const { clock, events } = this.#deps
    const missing = await this.#findMissing(pass, pass.notRejected())
    pass.wasStored = missing.length === 0 && !pass.hasHistory
    const suspects = await this.#findSuspects(pass, missing)
    if (!(await this.#consumeToken(pass, missing, pass.id, suspects))) return
    for (const group of groupsOf([...suspects].filter((index) => !pass.alone.has(index))))
      if (!(await this.#persist(pass, listName('alone', group)))) return
    let left = missing.filter((index) => !suspects.has(index))
    if (suspects.size > 0) left = await this.#findMissing(pass, left)
    if (suspects.size > 0 && left.length > 0) {
      // An insert that ClickHouse has just found to be a copy may be followed by the rows of the original.
      await clock.sleep(SETTLE_MS)
      left = await this.#findMissing(pass, left)
    }
    if (left.length === 0 && pass.acceptedError instanceof ClickHouseError)
      events.emit('stored despite error', pass.acceptedError)
    if (left.length > 0) {
      if (!(await this.#persist(pass, HALVED))) return
      await this.#insertParts(pass, { from: 0, to: pass.rows.length, lost: 0 })
    }
    for (const group of groupsOf([...pass.alone])) await this.#insertAlone(pass, group)
  }

  /**
   * The rows that are sent alone, and those that ClickHouse seems to reject. The latter need not be right. Once halves may be in flight,
   * there are none of them: a half may contain them.
   */
  async #findSuspects(pass: SplitPass, missing: readonly number[]): Promise<ReadonlySet<number>> {
    const { rowCheck, logger } = this.#deps
    const checked = pass.splits.has(HALVED) ? missing.filter((index) => pass.alone.has(index)) : missing
    if (checked.length < 2) return pass.alone
    try {
      const found = await rowCheck.findSuspects(checked.map((index) => pass.row(index)))
      const byId = new Map(found.map((suspect) => [suspect.id, suspect]))
      const suspects = checked.filter((index) => byId.has(pass.rowId(index)))
      for (const index of suspects) {
        const { violated } = byId.get(pass.rowId(index)) ?? {}
        if (violated !== undefined) pass.violations.set(index, violated)
      }
      return new Set([...pass.alone, ...suspects])
    } catch (error) {
      logger.warn({ batchId: pass.id, reason: describeError(error) }, 'rejected rows not found by a query')
      return pass.alone
    }
  }

  /** Inserts the halves of a range that is persisted as split, and whose token is consumed. */
  async #insertParts(pass: SplitPass, { from, to, lost }: Range): Promise<void> {
    if (to - from === 1) return this.#insertRow(pass, from)
    const middle = from + Math.floor((to - from) / 2)
    await this.#insertRange(pass, { from, to: middle, lost })
    await this.#insertRange(pass, { from: middle, to, lost })
  }

  async #insertRange(pass: SplitPass, { from, to, lost }: Range): Promise<void> {
    const open = pass.open(from, to)
    if (this.#isHopeless(pass) || open.length === 0) return
    if (to - from === 1) return this.#insertRow(pass, from)
    const range = rangeName(from, to)
    const token = `${pass.id}/${range}`
    let lostNow = lost
    if (!pass.splits.has(range)) {
      const insert = this.#deps.rowInserter.prepare(
        framesOf(pass, open),
        token,
        true,
        this.#onUnanswered(pass),
      )
      const { at } = await this.#attempt(
        () => insert.run(),
        (failure) => failure !== 'transient',
      )
      if (at === 'stored') return
      if (at === 'token-without-rows') lostNow += 1
      if (lostNow > LOST_TOKENS_MAX) throw new UndeliverableError(`rows of ${token} are not found`)
      if (!(await this.#persist(pass, range))) return
    }
    if (await this.#consumeToken(pass, await this.#findMissing(pass, open), token, new Set()))
      await this.#insertParts(pass, { from, to, lost: lostNow })
  }

  async #insertRow(pass: SplitPass, index: number): Promise<void> {
    const { rowInserter } = this.#deps
    const token = tokenOfRow(pass, index)
    const insert = rowInserter.prepareSingle(compressRows(pass.row(index)), token, this.#onUnanswered(pass))
    const result = await this.#attempt(() => insert.run(), isAboutRows)
    if (result.at === 'token-without-rows') throw new UndeliverableError(`the row of ${token} is not found`)
    // If a materialized view fails, ClickHouse reports an error after it has stored the row.
    if (result.at === 'rejected' && (await this.#findMissing(pass, [index])).length > 0)
      await this.#reject(pass, [{ index, error: result.error }])
  }

  /**
   * Inserts rows alone that are persisted as such. Of the rows that violate one constraint, as ClickHouse has evaluated it, one is sent. If
   * ClickHouse rejects that one, it need not reject each of the others.
   */
  async #insertAlone(pass: SplitPass, group: readonly number[]): Promise<void> {
    const missing = await this.#findMissing(
      pass,
      group.filter((index) => !pass.rejected.has(index)),
    )
    const errors = new Map<number, unknown>()
    const byConstraint = Map.groupBy(missing, (index) => pass.violations.get(index)?.message)
    const uncertain = byConstraint.get(undefined) ?? []
    byConstraint.delete(undefined)
    for (const [constraint = '', [first, ...others]] of byConstraint) {
      if (first === undefined) continue
      if (!pass.confirmed.has(constraint)) await this.#insertEach(pass, [first], errors)
      else others.push(first)
      const error = errors.get(first)
      if (error instanceof ClickHouseError && error.code === pass.violations.get(first)?.code)
        pass.confirmed.add(constraint)
      if (!pass.confirmed.has(constraint)) uncertain.push(...others)
      else for (const index of others) errors.set(index, pass.violations.get(index))
    }
    await this.#insertEach(pass, uncertain, errors)
    const rejected: Rejection[] = []
    for (const index of await this.#findMissing(pass, [...errors.keys()])) {
      const error = errors.get(index)
      // ClickHouse has the token of the row without the row.
      if (error === undefined) await this.#insertRow(pass, index)
      else rejected.push({ index, error })
    }
    await this.#reject(pass, rejected)
  }

  /** Inserts each of the rows alone. @param errors receives the error of each row that was sent, or undefined */
  async #insertEach(
    pass: SplitPass,
    indexes: readonly number[],
    errors: Map<number, unknown>,
  ): Promise<void> {
    const waiting = indexes.values()
    const insertNext = async (): Promise<void> => {
      for (const index of waiting) {
        if (this.#isHopeless(pass)) return
        const insert = (): Promise<InsertResult> =>
          this.#deps.rowInserter.insertSingle(
            compressRows(pass.row(index)),
            tokenOfRow(pass, index),
            this.#onUnanswered(pass),
          )
        const result = await this.#attempt(insert, isAboutRows)
        errors.set(index, result.at === 'rejected' ? result.error : undefined)
      }
    }
    await Promise.all(Array.from({ length: ALONE_IN_FLIGHT_MAX }, insertNext))
  }

  /**
   * Dead-letters rejected rows, except for those for which it is too early. First the rows are persisted as rejected. From then on, no
   * worker tries to insert them, even if the table is changed so that ClickHouse would accept them.
   */
  async #reject(pass: SplitPass, rejections: readonly Rejection[]): Promise<void> {
    const isSettled = this.#deps.clock.nowMs() >= pass.unsettledUntilMs
    const final: Rejection[] = []
    for (const rejection of rejections) {
      const isKnown = classifyInsertError(rejection.error).failure === 'poison'
      if (!isKnown && !pass.isLast) pass.suspects += 1
      else if (!isSettled) pass.unsettled += 1
      else final.push(rejection)
    }
    if (final.length === 0) return
    const name = listName(
      'rejected',
      final.map(({ index }) => index),
    )
    if (!(await this.#persist(pass, name))) return
    const letters = final.map(({ index, error }) => rejectedRow(error, pass.row(index)))
    await this.#deadLetter(pass, letters, tokenOfList(pass, name), false)
  }

  #isHopeless({ suspects, startedMs }: SplitPass): boolean {
    return suspects >= SUSPECTS_MAX && !this.#deps.health.hasSucceededSince(startedMs)
  }

  /**
   * Consumes a token in each partition that lacks rows. Only missing rows may be used: ClickHouse may have forgotten that the token was
   * consumed earlier.
   *
   * @param missing the rows of the token's range that are not stored
   * @param suspects those that ClickHouse seems to reject. If there are any, the others are inserted at once
   * @returns whether the parts may be sent. If ClickHouse rejects the rows of a partition, the cause may pass: with an unknown code by
   *   itself, otherwise if an operator changes the table. Then another attempt with this token could insert a row whose part may be in
   *   flight as well.
   */
  async #consumeToken(
    pass: SplitPass,
    missing: readonly number[],
    token: string,
    suspects: ReadonlySet<number>,
  ): Promise<boolean> {
    const accepted = suspects.size === 0 ? [] : missing.filter((index) => !suspects.has(index))
    const result = accepted.length === 0 ? undefined : await this.#consumeWith(pass, accepted, token)
    if (result?.at === 'rejected') pass.acceptedError = result.error
    const areStored = result?.at === 'stored'
    const consumed = new Set(areStored ? accepted.map((index) => partitionOf(pass, index)) : [])
    let isCertain = true
    for (const [partition, indexes] of Map.groupBy(missing, (index) => partitionOf(pass, index)))
      if (!consumed.has(partition)) isCertain = (await this.#consumeIn(pass, indexes, token)) && isCertain
    return isCertain
  }

  /**
   * Consumes a token with the first row of a partition that ClickHouse accepts.
   *
   * @returns whether the token is consumed, or cannot be used because its rows are rejected for good
   */
  async #consumeIn(pass: SplitPass, indexes: readonly number[], token: string): Promise<boolean> {
    let hasSuspects = false
    for (const index of indexes.slice(0, CONSUMING_ROWS_MAX)) {
      const result = await this.#consumeWith(pass, [index], token)
      if (result.at === 'stored') {
        // The query is wrong about this row, or the table was changed since.
        if (pass.violations.has(index)) pass.violations.clear()
        return true
      }
      hasSuspects ||= result.at === 'rejected' && classifyInsertError(result.error).failure === 'unknown'
    }
    if (hasSuspects && !pass.isLast) pass.suspects += 1
    // If the table is changed meanwhile, an earlier attempt could still insert a row whose part is sent now.
    else if (this.#deps.clock.nowMs() < pass.unsettledUntilMs) pass.unsettled += 1
    else return true
    return false
  }

  #consumeWith(pass: SplitPass, indexes: readonly number[], token: string): Promise<AttemptResult> {
    const frames = framesOf(pass, indexes)
    const consume = (): Promise<InsertResult> =>
      this.#deps.rowInserter.consumeToken(frames, token, this.#onUnanswered(pass))
    // A single row is never too big.
    return this.#attempt(consume, indexes.length === 1 ? isAboutRows : (failure) => failure !== 'transient')
  }

  /** @returns those of the rows that are not stored */
  async #findMissing(pass: SplitPass, indexes: readonly number[]): Promise<number[]> {
    const { rowInserter, retrier, health } = this.#deps
    if (indexes.length === 0) return []
    const stored = await retrier.retry(
      'stored rows not looked up',
      () => rowInserter.findStored(framesOf(pass, indexes)),
      () => health.giveUpSignal,
    )
    return indexes.filter((index) => !stored.has(pass.rowId(index)))
  }

  /** An attempt without a response may still commit, unless its token is consumed. The token of a rejected row cannot be consumed. */
  #onUnanswered(pass: SplitPass): () => void {
    const { clock, insertLingerMaxMs } = this.#deps
    return () => (pass.unsettledUntilMs = clock.nowMs() + insertLingerMaxMs)
  }

  #attempt(
    run: () => Promise<InsertResult>,
    isRejection: (failure: InsertFailure) => boolean,
  ): Promise<AttemptResult> {
    const { retrier, health } = this.#deps
    return retrier.retry(
      'part of a batch not inserted',
      () => attemptInsert(run, isRejection),
      () => health.giveUpSignal,
    )
  }

  /** @returns whether what follows may be sent; if not, another worker has confirmed the batch */
  async #persist(pass: SplitPass, name: string): Promise<boolean> {
    const { ledger, clock, events } = this.#deps
    const recording = ledger.recordSplit(pass.id, name, pass.repair)
    const isClaimed = await withTimeout(recording, workerLimits.repairStepMaxMs, clock)
    if (isClaimed && pass.persisted(name)) events.emit('range split')
    return isClaimed
  }

  /**
   * @param wasSent whether another repair may have stored the letters
   * @param rows how many rows the letters are for
   */
  async #deadLetter(
    pass: SplitPass,
    letters: readonly DeadLetter[],
    token: string,
    wasSent: boolean,
    rows = letters.length,
  ): Promise<void> {
    const { deadLetters, retrier, logger, health } = this.#deps
    const insert = deadLetters.prepare(letters, token, wasSent)
    const result = await retrier.retry(
      'dead letters not stored',
      () => insert.run(),
      () => health.giveUpSignal,
    )
    if (result === 'token-without-rows')
      throw new UndeliverableError(`the dead letters of ${token} are not found`)
    pass.deadLettered += rows
    for (const [code, { length }] of Map.groupBy(letters, (letter) => letter.code))
      logger.error({ code, token, letters: length }, 'rows dead-lettered')
  }
}

/** A row that ClickHouse has rejected. */
interface Rejection {
  readonly index: number
  readonly error: unknown
}

/** A range of rows, and how many of the ranges around it had a token without rows. */
interface Range {
  readonly from: number
  readonly to: number
  readonly lost: number
}

function groupsOf(indexes: readonly number[]): number[][] {
  const groups: number[][] = []
  for (let from = 0; from < indexes.length; from += ALONE_ROWS_MAX)
    groups.push(indexes.slice(from, from + ALONE_ROWS_MAX))
  return groups
}

function framesOf(pass: SplitPass, indexes: readonly number[]): Buffer[] {
  const frames: Buffer[] = []
  for (let from = 0; from < indexes.length; from += FRAME_ROWS_MAX) {
    const rows = indexes.slice(from, from + FRAME_ROWS_MAX).map((index) => pass.row(index))
    frames.push(compressRows(rows.join('')))
  }
  return frames
}

function partitionOf(pass: SplitPass, index: number): string {
  return rowKey(pass.row(index)).expiresOn
}

function tokenOfRow({ id }: SplitPass, index: number): string {
  return `${id}/${rangeName(index, index + 1)}`
}

/** A token is part of a URL. */
function tokenOfList({ id }: SplitPass, name: string): string {
  return `${id}/${name.length > 40 ? hash('sha256', name) : name}`
}

function isAboutRows(failure: InsertFailure): boolean {
  return failure === 'poison' || failure === 'unknown'
}

function unreadableChunk({ frame }: HeldChunk): DeadLetter {
  return {
    code: 'UNREADABLE_CHUNK',
    reason: 'the frame cannot be decompressed',
    text: frame.toString('base64'),
  }
}

function rejectedRow(error: unknown, row: string): DeadLetter {
  const reason = error instanceof Error ? error.message : 'unknown'
  return { code: classifyInsertError(error).code, reason, text: textOf(row) }
}

/** The letter of a row that is persisted as rejected. It is stored already, unless the worker that knew the reason died before that. */
function earlierRejectedRow(row: string): DeadLetter {
  return { code: 'REJECTED', reason: 'only the worker that died knew the reason', text: textOf(row) }
}

function textOf(row: string): string {
  return rowAsJson(row) ?? row.trimEnd()
}
