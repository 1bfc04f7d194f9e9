import {
  classifyInsertError,
  type DeadLetter,
  type DeadLetters,
  type InsertHistory,
  type RowInserter,
} from '@sluice/clickhouse'
import type { BatchLedger, HeldChunk } from '@sluice/queue'
import { compressRows, rowAsJson, rowsOfFrame } from '@sluice/rows'
import type { Logger } from '@sluice/runtime'
import { attemptInsert } from './insert-attempt.ts'
import type { Retrier } from './retrier.ts'
import type { Semaphore } from './semaphore.ts'

/** A claimed batch whose chunks this process has in memory. */
export interface Batch {
  readonly id: string
  readonly chunks: readonly HeldChunk[]
  /** Ranges of its rows that must not be sent as a whole, as persisted. The whole batch is one of them. */
  readonly splits: ReadonlySet<string>
  /** What other workers may have sent of it. */
  readonly history: InsertHistory
  /** On the monotonic clock, before the batch was claimed or read. */
  readonly sinceMs: number
}

export interface BatchSplitterDependencies {
  readonly ledger: Pick<BatchLedger, 'recordSplit'>
  readonly rowInserter: Pick<RowInserter, 'prepare'>
  readonly insertPermits: Pick<Semaphore, 'run'>
  /** Limits the batches that are decompressed at the same time. */
  readonly splitPermits: Pick<Semaphore, 'run'>
  readonly deadLetters: Pick<DeadLetters, 'prepare'>
  readonly retrier: Retrier
  readonly logger: Logger
}

/**
 * Inserts a batch that ClickHouse rejects as a whole: halves it until each rejected row is alone, and dead-letters those rows.
 *
 * Each range of rows has its own token. Before its halves are sent, the range is persisted as split, and is never sent as a whole
 * again. Otherwise ClickHouse might accept both the range and its halves, for example after a migration. A worker that takes the batch
 * over finds the same ranges, and inserts nothing twice.
 */
export class BatchSplitter {
  readonly #deps: BatchSplitterDependencies

  constructor(dependencies: BatchSplitterDependencies) {
    this.#deps = dependencies
  }

  /** @returns `confirmed` if another worker has confirmed the batch, and nothing was sent */
  async insertByParts(batch: Batch): Promise<'stored' | 'confirmed'> {
    if (!(await this.#recordSplit(batch.id, WHOLE_BATCH))) return 'confirmed'
    await this.#deps.splitPermits.run(() => this.#insertUnpacked(batch))
    return 'stored'
  }

  async #insertUnpacked(batch: Batch): Promise<void> {
    const rows: string[] = []
    for (const chunk of batch.chunks) {
      const rowsOfChunk = rowsOfFrame(chunk.frame)
      if (rowsOfChunk === undefined)
        await this.#deadLetter(batch, unreadableChunk(chunk), `${batch.id}/chunk/${chunk.id}`)
      else rows.push(...rowsOfChunk)
    }
    if (rows.length > 0) await this.#halve({ ...batch, rows }, 0, rows.length)
  }

  async #insertRange(batch: UnpackedBatch, from: number, to: number): Promise<void> {
    const { id, rows, splits, history } = batch
    const { rowInserter, insertPermits, retrier } = this.#deps
    const range = rangeName(from, to)
    if (!splits.has(range)) {
      const token = `${id}/${range}`
      const frame = compressRows(rows.slice(from, to).join(''))
      // The token of a range does not cover attempts with larger ranges, so its rows are always looked up first.
      const insert = rowInserter.prepare([frame], token, history.sent ? history : maybeSent)
      const isSingle = to - from === 1
      const result = await retrier.retry('part of a batch not inserted', () =>
        insertPermits.run(() =>
          attemptInsert(insert, (failure) => failure === 'poison' || (failure === 'too_big' && !isSingle)),
        ),
      )
      if (!result.rejected) return
      if (isSingle) return this.#deadLetter(batch, rejectedRow(result.error, rows[from] ?? ''), token)
      if (!(await this.#recordSplit(id, range))) return
    }
    await this.#halve(batch, from, to)
  }

  async #halve(batch: UnpackedBatch, from: number, to: number): Promise<void> {
    if (to - from === 1) return this.#insertRange(batch, from, to)
    const middle = from + Math.floor((to - from) / 2)
    await this.#insertRange(batch, from, middle)
    await this.#insertRange(batch, middle, to)
  }

  /** @returns whether the parts of the range may be sent */
  #recordSplit(batchId: string, range: string): Promise<boolean> {
    const { ledger, retrier } = this.#deps
    return retrier.retry('split not recorded', () => ledger.recordSplit(batchId, range))
  }

  async #deadLetter({ history }: Batch, letter: DeadLetter, token: string): Promise<void> {
    const { deadLetters, retrier, logger } = this.#deps
    const insert = deadLetters.prepare(letter, token, history.sent)
    await retrier.retry('dead letter not stored', () => insert.run())
    logger.error({ code: letter.code, token }, 'row dead-lettered')
  }
}

interface UnpackedBatch extends Batch {
  /** The rows of all readable chunks, each with its newline. */
  readonly rows: readonly string[]
}

/** The name under which the split of the whole batch is persisted. */
const WHOLE_BATCH = 'all'

/** This worker may have sent the rows of a range as part of the whole batch, but no attempt is in flight. */
const maybeSent: InsertHistory = { sent: true, mayLandUntilMs: 0 }

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
