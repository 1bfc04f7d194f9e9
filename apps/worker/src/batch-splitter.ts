import {
  classifyInsertError,
  type DeadLetter,
  type DeadLetters,
  type InsertResult,
  type RowInserter,
} from '@sluice/clickhouse'
import type { BatchLedger, HeldChunk } from '@sluice/queue'
import { compressRows, rowAsJson, rowKey, rowsOfFrame } from '@sluice/rows'
import type { Logger } from '@sluice/runtime'
import { type AttemptResult, attemptInsert } from './insert-attempt.ts'
import type { Retrier } from './retrier.ts'
import type { Semaphore } from './semaphore.ts'

/** A claimed batch whose chunks this process has in memory. */
export interface Batch {
  readonly id: string
  readonly chunks: readonly HeldChunk[]
  /** Ranges of its rows that must not be sent as a whole, as persisted. The whole batch is one of them. */
  readonly splits: ReadonlySet<string>
  /** Whether another worker may have sent rows of it. */
  readonly wasSent: boolean
  /** On the monotonic clock, before the batch was claimed or read. */
  readonly sinceMs: number
}

/** ClickHouse has confirmed a row under every token, but a lookup does not find it. An operator must find out why. */
class RowNotFoundError extends Error {
  override name = 'RowNotFoundError'
}

export interface BatchSplitterDependencies {
  readonly ledger: Pick<BatchLedger, 'recordSplit'>
  readonly rowInserter: Pick<RowInserter, 'prepare' | 'prepareSingle' | 'consumeToken' | 'findStored'>
  readonly insertPermits: Pick<Semaphore, 'run'>
  /** Limits the batches that are decompressed at the same time. */
  readonly splitPermits: Pick<Semaphore, 'run'>
  readonly deadLetters: Pick<DeadLetters, 'prepare'>
  readonly retrier: Retrier
  readonly logger: Logger
  /** How long another worker's attempt to insert a single row may still commit after the batch was read, ms. */
  readonly insertLingerMaxMs: number
}

/**
 * Rows that are tried to consume a token. If ClickHouse rejects all of them, the token stays unused, and an insert of the whole range
 * would be rejected because of them.
 */
const CONSUMING_ROWS_MAX = 16
/** Nested ranges whose tokens ClickHouse has without their rows. Each takes a server crash; more mean that lookups do not see the rows. */
const LOST_TOKENS_MAX = 3

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
 * aware of a split learns it when it confirms the batch (`BatchLedger.confirm`).
 */
export class BatchSplitter {
  readonly #deps: BatchSplitterDependencies

  constructor(dependencies: BatchSplitterDependencies) {
    this.#deps = dependencies
  }

  /**
   * @returns the splits of the batch that were taken into account; undefined if another worker has confirmed the batch, and nothing was
   *   sent
   */
  async insertByParts(batch: Batch): Promise<ReadonlySet<string> | undefined> {
    const splits = new Set(batch.splits)
    if (!(await this.#recordSplit(batch.id, WHOLE_BATCH, splits))) return undefined
    await this.#deps.splitPermits.run(() => this.#insertUnpacked(batch, splits))
    return splits
  }

  async #insertUnpacked(batch: Batch, splits: Set<string>): Promise<void> {
    const rows: string[] = []
    for (const chunk of batch.chunks) {
      const rowsOfChunk = rowsOfFrame(chunk.frame)
      if (rowsOfChunk === undefined)
        await this.#deadLetter(batch, unreadableChunk(chunk), `${batch.id}/chunk/${chunk.id}`)
      else rows.push(...rowsOfChunk)
    }
    if (rows.length > 0) await this.#split({ ...batch, rows, splits }, { from: 0, to: rows.length, lost: 0 })
  }

  /** Inserts the halves of a range that is persisted as split. */
  async #split(batch: UnpackedBatch, { from, to, lost }: Range): Promise<void> {
    await this.#consumeToken(batch, from, to)
    if (to - from === 1) return this.#insertRow(batch, from)
    const middle = from + Math.floor((to - from) / 2)
    await this.#insertRange(batch, { from, to: middle, lost })
    await this.#insertRange(batch, { from: middle, to, lost })
  }

  async #insertRange(batch: UnpackedBatch, { from, to, lost }: Range): Promise<void> {
    if (to - from === 1) return this.#insertRow(batch, from)
    const range = rangeName(from, to)
    let lostNow = lost
    if (!batch.splits.has(range)) {
      const frame = compressRows(batch.rows.slice(from, to).join(''))
      const insert = this.#deps.rowInserter.prepare([frame], `${batch.id}/${range}`, true)
      const { at } = await this.#attempt(
        () => insert.run(),
        (failure) => failure !== 'transient',
      )
      if (at === 'stored') return
      if (at === 'token-without-rows') lostNow += 1
      if (lostNow > LOST_TOKENS_MAX) throw new RowNotFoundError(`rows of ${batch.id}/${range} are not found`)
      if (!(await this.#recordSplit(batch.id, range, batch.splits))) return
    }
    await this.#split(batch, { from, to, lost: lostNow })
  }

  async #insertRow(batch: UnpackedBatch, index: number): Promise<void> {
    const { id, rows, wasSent, sinceMs } = batch
    const { rowInserter, insertLingerMaxMs } = this.#deps
    const row = rows[index] ?? ''
    const token = `${id}/${rangeName(index, index + 1)}`
    const mayLandUntilMs = wasSent ? sinceMs + insertLingerMaxMs : 0
    const insert = rowInserter.prepareSingle(compressRows(row), token, mayLandUntilMs)
    const result = await this.#attempt(
      () => insert.run(),
      (failure) => failure === 'poison',
    )
    if (result.at === 'rejected') await this.#deadLetter(batch, rejectedRow(result.error, row), token)
    if (result.at === 'token-without-rows') throw new RowNotFoundError(`the row of ${token} is not found`)
  }

  /**
   * Consumes the token of a range in each partition that lacks rows of the range, with the first of these rows that ClickHouse accepts.
   * Only missing rows may be used: ClickHouse may have forgotten that the token was consumed earlier.
   */
  async #consumeToken({ id, rows }: UnpackedBatch, from: number, to: number): Promise<void> {
    const { rowInserter, retrier } = this.#deps
    const ofRange = rows.slice(from, to)
    const stored = await retrier.retry('stored rows not looked up', () =>
      rowInserter.findStored([compressRows(ofRange.join(''))]),
    )
    const isWhole = from === 0 && to === rows.length
    const token = isWhole ? id : `${id}/${rangeName(from, to)}`
    const missing = ofRange.filter((row) => !stored.has(rowKey(row).id))
    for (const ofPartition of Map.groupBy(missing, (row) => rowKey(row).expiresOn).values())
      await this.#consumeIn(ofPartition, token)
  }

  async #consumeIn(rows: readonly string[], token: string): Promise<void> {
    for (const row of rows.slice(0, CONSUMING_ROWS_MAX)) {
      const frame = compressRows(row)
      const { at } = await this.#attempt(
        () => this.#deps.rowInserter.consumeToken(frame, token),
        (failure) => failure === 'poison',
      )
      if (at === 'stored') return
    }
  }

  #attempt(
    run: () => Promise<InsertResult>,
    isRejection: Parameters<typeof attemptInsert>[1],
  ): Promise<AttemptResult> {
    const { insertPermits, retrier } = this.#deps
    return retrier.retry('part of a batch not inserted', () =>
      insertPermits.run(() => attemptInsert(run, isRejection)),
    )
  }

  /** @returns whether the parts of the range may be sent */
  async #recordSplit(batchId: string, range: string, splits: Set<string>): Promise<boolean> {
    const { ledger, retrier } = this.#deps
    const isClaimed = await retrier.retry('split not recorded', () => ledger.recordSplit(batchId, range))
    if (isClaimed) splits.add(range)
    return isClaimed
  }

  async #deadLetter({ wasSent }: Batch, letter: DeadLetter, token: string): Promise<void> {
    const { deadLetters, retrier, logger } = this.#deps
    const insert = deadLetters.prepare(letter, token, wasSent)
    const result = await retrier.retry('dead letter not stored', () => insert.run())
    if (result === 'token-without-rows')
      throw new RowNotFoundError(`the dead letter of ${token} is not found`)
    logger.error({ code: letter.code, token }, 'row dead-lettered')
  }
}

interface UnpackedBatch extends Batch {
  /** The rows of all readable chunks, each with its newline. */
  readonly rows: readonly string[]
  /** The ranges that are persisted as split, as far as this worker knows. */
  readonly splits: Set<string>
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

function unreadableChunk({ frame }: HeldChunk): DeadLetter {
  return {
    code: 'UNREADABLE_CHUNK',
    reason: 'the frame cannot be decompressed',
    text: frame.toString('base64'),
  }
}

function rejectedRow(error: unknown, row: string): DeadLetter {
  const reason = error instanceof Error ? error.message : 'unknown'
  return { code: classifyInsertError(error).code, reason, text: rowAsJson(row) ?? row.trimEnd() }
}
