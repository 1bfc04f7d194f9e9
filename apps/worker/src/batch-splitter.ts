import {
  classifyInsertError,
  describeError,
  type DeadLetter,
  type DeadLetters,
  type InsertFailure,
  type InsertResult,
  type RowInserter,
} from '@sluice/clickhouse'
import type { BatchLedger, HeldChunk } from '@sluice/queue'
import { compressRows, rowAsJson, rowKey, rowsOfFrame } from '@sluice/rows'
import { type Logger, type MonotonicClock, withTimeout } from '@sluice/runtime'
import type { BatchInRepair, EarlierAttempts, Suspension } from './batch.ts'
import type { InsertHealth } from './insert-health.ts'
import { workerLimits } from './limits.ts'
import { type AttemptResult, attemptInsert, isFinal, type Retrier, UndeliverableError } from './retrier.ts'
import type { Emit } from './worker-events.ts'

export interface BatchSplitterDependencies {
  readonly ledger: Pick<BatchLedger, 'recordSplit'>
  readonly rowInserter: Pick<RowInserter, 'prepare' | 'prepareSingle' | 'consumeToken' | 'findStored'>
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
  /** All rows are stored, this many of them as dead letters. */
  | { readonly at: 'stored'; readonly deadLettered: number }
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

/**
 * Inserts a batch in parts, because ClickHouse rejects it as a whole, or has its token without its rows: halves it until each rejected
 * row is alone, and dead-letters those rows.
 *
 * Each range of rows has its own token. Before its halves are sent,
 *
 * 1. the range is persisted as split: from then on, no worker starts to send it as a whole;
 * 2. its token is consumed in each partition: from then on, an insert of the whole range that is still in flight, of this worker or of
 *    another one, changes nothing, however late it arrives;
 * 3. the rows of each half are looked up, and only missing rows are sent.
 *
 * So two workers that have the same batch insert no row twice, for as long as ClickHouse remembers the tokens. A worker that was not
 * aware of a split learns it when it confirms the batch (`ChunkConsumer.finish`).
 */
export class BatchSplitter {
  readonly #deps: BatchSplitterDependencies

  constructor(dependencies: BatchSplitterDependencies) {
    this.#deps = dependencies
  }

  /** @throws UndeliverableError, RequeueError, and errors of Redis */
  async insertByParts(batch: BatchInRepair, earlier: EarlierAttempts): Promise<PartsResult> {
    const { clock, logger } = this.#deps
    const startedMs = clock.nowMs()
    const pass = this.#begin(batch, startedMs, earlier)
    try {
      if (!(await this.#insertAll(pass, batch))) return { at: 'confirmed' }
    } catch (error) {
      if (isFinal(error)) throw error
      logger.warn({ batchId: batch.id, reason: describeError(error) }, 'batch not inserted by parts')
      return { at: 'failed', earlier: { ...earlier, unsettledUntilMs: pass.unsettledUntilMs } }
    }
    return pass.suspects + pass.unsettled > 0
      ? { at: 'suspended', earlier: earlierOf(pass, earlier.suspension) }
      : { at: 'stored', deadLettered: pass.deadLettered }
  }

  #begin(
    { id, splits, repair }: BatchInRepair,
    startedMs: number,
    { unsettledUntilMs, suspension }: EarlierAttempts,
  ): Pass {
    return {
      id,
      repair,
      rows: [],
      splits: new Set(splits),
      startedMs,
      // If ClickHouse has accepted no row since the last attempt, the cause may be the table.
      isLast:
        suspension !== undefined &&
        startedMs - suspension.firstMs >= workerLimits.unknownRejectionMs &&
        this.#deps.health.hasSucceededSince(suspension.lastMs),
      unsettledUntilMs,
      suspects: 0,
      unsettled: 0,
      deadLettered: 0,
    }
  }

  /** @returns false if another worker has confirmed the batch */
  async #insertAll(pass: Pass, { chunks }: BatchInRepair): Promise<boolean> {
    if (!(await this.#recordSplit(pass, WHOLE_BATCH))) return false
    for (const chunk of chunks) {
      const rows = rowsOfFrame(chunk.frame)
      if (rows !== undefined) pass.rows.push(...rows)
      else await this.#deadLetter(pass, chunk.rows, unreadableChunk(chunk), `${pass.id}/chunk/${chunk.id}`)
    }
    if (pass.rows.length > 0) await this.#split(pass, { from: 0, to: pass.rows.length, lost: 0 })
    return true
  }

  /** Inserts the halves of a range that is persisted as split. */
  async #split(pass: Pass, { from, to, lost }: Range): Promise<void> {
    if (!(await this.#consumeToken(pass, from, to))) return
    if (to - from === 1) return this.#insertRow(pass, from)
    const middle = from + Math.floor((to - from) / 2)
    await this.#insertRange(pass, { from, to: middle, lost })
    await this.#insertRange(pass, { from: middle, to, lost })
  }

  async #insertRange(pass: Pass, { from, to, lost }: Range): Promise<void> {
    if (this.#isHopeless(pass)) return
    if (to - from === 1) return this.#insertRow(pass, from)
    const range = rangeName(from, to)
    let lostNow = lost
    if (!pass.splits.has(range)) {
      const frame = compressRows(openRows(pass, from, to).join(''))
      const insert = this.#deps.rowInserter.prepare(
        [frame],
        `${pass.id}/${range}`,
        true,
        this.#onUnanswered(pass),
      )
      const { at } = await this.#attempt(
        () => insert.run(),
        (failure) => failure !== 'transient',
      )
      if (at === 'stored') return
      if (at === 'token-without-rows') lostNow += 1
      if (lostNow > LOST_TOKENS_MAX) throw new UndeliverableError(`rows of ${pass.id}/${range} are not found`)
      if (!(await this.#recordSplit(pass, range))) return
    }
    await this.#split(pass, { from, to, lost: lostNow })
  }

  async #insertRow(pass: Pass, index: number): Promise<void> {
    const { rowInserter } = this.#deps
    const row = pass.rows[index] ?? ''
    const token = `${pass.id}/${rangeName(index, index + 1)}`
    if (isMarkedRejected(pass, index)) return this.#deadLetter(pass, 1, earlierRejectedRow(row), token)
    const insert = rowInserter.prepareSingle(compressRows(row), token, this.#onUnanswered(pass))
    const result = await this.#attempt(() => insert.run(), isAboutRows)
    if (result.at === 'token-without-rows') throw new UndeliverableError(`the row of ${token} is not found`)
    // If a materialized view fails, ClickHouse reports an error after it has stored the row.
    if (result.at === 'rejected' && (await this.#findStored([row])).size === 0)
      await this.#reject(pass, index, result.error)
  }

  /**
   * Dead-letters a rejected row, unless it is too early for that. First the row is persisted as rejected. From then on, no worker tries
   * to insert it, even if the table is changed so that ClickHouse would accept it.
   */
  async #reject(pass: Pass, index: number, error: unknown): Promise<void> {
    const isKnown = classifyInsertError(error).failure === 'poison'
    if (!isKnown && !pass.isLast) {
      pass.suspects += 1
    } else if (this.#deps.clock.nowMs() < pass.unsettledUntilMs) {
      pass.unsettled += 1
    } else {
      const range = rangeName(index, index + 1)
      if (await this.#recordSplit(pass, range))
        await this.#deadLetter(pass, 1, rejectedRow(error, pass.rows[index] ?? ''), `${pass.id}/${range}`)
    }
  }

  #isHopeless({ suspects, startedMs }: Pass): boolean {
    return suspects >= SUSPECTS_MAX && !this.#deps.health.hasSucceededSince(startedMs)
  }

  /**
   * Consumes the token of a range in each partition that lacks rows of the range, with the first of these rows that ClickHouse accepts.
   * Only missing rows may be used: ClickHouse may have forgotten that the token was consumed earlier.
   *
   * @returns whether the parts may be sent. If ClickHouse rejects the rows of a partition, the cause may pass: with an unknown code by
   *   itself, otherwise if an operator changes the table. Then another attempt with this token could insert a row whose part may be in
   *   flight as well.
   */
  async #consumeToken(pass: Pass, from: number, to: number): Promise<boolean> {
    const { id, rows } = pass
    const ofRange = openRows(pass, from, to)
    const stored = await this.#findStored(ofRange)
    const isWhole = from === 0 && to === rows.length
    const token = isWhole ? id : `${id}/${rangeName(from, to)}`
    const missing = ofRange.filter((row) => !stored.has(rowKey(row).id))
    let isCertain = true
    for (const ofPartition of Map.groupBy(missing, (row) => rowKey(row).expiresOn).values())
      isCertain = (await this.#consumeIn(pass, ofPartition, token)) && isCertain
    return isCertain
  }

  /** @returns whether the token is consumed, or cannot be used because its rows are rejected for good */
  async #consumeIn(pass: Pass, rows: readonly string[], token: string): Promise<boolean> {
    let hasSuspects = false
    for (const row of rows.slice(0, CONSUMING_ROWS_MAX)) {
      const insert = (): Promise<InsertResult> =>
        this.#deps.rowInserter.consumeToken(compressRows(row), token, this.#onUnanswered(pass))
      const result = await this.#attempt(insert, isAboutRows)
      if (result.at === 'stored') return true
      hasSuspects ||= result.at === 'rejected' && classifyInsertError(result.error).failure === 'unknown'
    }
    if (hasSuspects && !pass.isLast) pass.suspects += 1
    // If the table is changed meanwhile, an earlier attempt could still insert a row whose part is sent now.
    else if (this.#deps.clock.nowMs() < pass.unsettledUntilMs) pass.unsettled += 1
    else return true
    return false
  }

  /** @returns the ids of the rows that are stored */
  async #findStored(rows: readonly string[]): Promise<ReadonlySet<string>> {
    const { rowInserter, retrier, health } = this.#deps
    return retrier.retry(
      'stored rows not looked up',
      () => rowInserter.findStored([compressRows(rows.join(''))]),
      () => health.giveUpSignal,
    )
  }

  /** An attempt without a response may still commit, unless its token is consumed. The token of a rejected row cannot be consumed. */
  #onUnanswered(pass: Pass): () => void {
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

  /** @returns whether the parts of the range may be sent */
  async #recordSplit({ id, repair, splits }: Pass, range: string): Promise<boolean> {
    const { ledger, clock, events } = this.#deps
    const recording = ledger.recordSplit(id, range, repair)
    const isClaimed = await withTimeout(recording, workerLimits.repairStepMaxMs, clock)
    if (isClaimed && !splits.has(range)) {
      splits.add(range)
      events.emit('range split')
    }
    return isClaimed
  }

  /** @param rows how many rows the letter is for */
  async #deadLetter(pass: Pass, rows: number, letter: DeadLetter, token: string): Promise<void> {
    const { deadLetters, retrier, logger, health } = this.#deps
    const insert = deadLetters.prepare(letter, token, true)
    const result = await retrier.retry(
      'dead letter not stored',
      () => insert.run(),
      () => health.giveUpSignal,
    )
    if (result === 'token-without-rows')
      throw new UndeliverableError(`the dead letter of ${token} is not found`)
    pass.deadLettered += rows
    logger.error({ code: letter.code, token }, 'row dead-lettered')
  }
}

/** One attempt to insert a batch in parts. */
interface Pass {
  readonly id: string
  readonly repair: number
  /** The rows of all readable chunks, each with its newline. */
  readonly rows: string[]
  /** The ranges that are persisted as split, as far as this worker knows. */
  readonly splits: Set<string>
  readonly startedMs: number
  /** Whether rows that are rejected with an unknown code are dead-lettered. */
  readonly isLast: boolean
  unsettledUntilMs: number
  /** Rows that were rejected with an unknown code. */
  suspects: number
  /** Rejected rows and ranges of such rows whose earlier attempts may still commit. */
  unsettled: number
  /** Rows that are dead letters, also from earlier attempts: each attempt goes through all rows. */
  deadLettered: number
}

function earlierOf({ startedMs, unsettledUntilMs }: Pass, earlier: Suspension | undefined): EarlierAttempts {
  return { unsettledUntilMs, suspension: { firstMs: earlier?.firstMs ?? startedMs, lastMs: startedMs } }
}

/** A range of rows, and how many of the ranges around it had a token without rows. */
interface Range {
  readonly from: number
  readonly to: number
  readonly lost: number
}

/** The name under which the split of the whole batch is persisted. */
const WHOLE_BATCH = 'all'

function rangeName(from: number, to: number): string {
  return `${from}-${to}`
}

function isAboutRows(failure: InsertFailure): boolean {
  return failure === 'poison' || failure === 'unknown'
}

/** Whether it is persisted that the row is rejected: then its range of one row is persisted as split. */
function isMarkedRejected({ splits }: Pass, index: number): boolean {
  return splits.has(rangeName(index, index + 1))
}

/** The rows of a range, without those that are persisted as rejected. */
function openRows(pass: Pass, from: number, to: number): string[] {
  return pass.rows.slice(from, to).filter((_row, i) => !isMarkedRejected(pass, from + i))
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
