import { encodeFrame, rowAsJson } from '@sluice/schema'
import type { BatchLedger } from './batch-ledger.ts'
import type { HeldChunk } from './collector.ts'
import type { DeadLetter, DeadLetters } from './dead-letters.ts'
import { classifyInsertError } from './insert-errors.ts'
import type { Persistence } from './persistence.ts'
import type { Sender } from './sender.ts'
import type { Slots } from './slots.ts'
import { linesOf } from './stored-rows.ts'

export interface SplitterDependencies {
  readonly ledger: Pick<BatchLedger, 'recordSplit'>
  readonly sender: Sender
  readonly slots: Pick<Slots, 'run'>
  /** What batches wait for before they are unpacked. */
  readonly unpacking: Pick<Slots, 'run'>
  readonly deadLetters: Pick<DeadLetters, 'tries'>
  readonly persistence: Persistence
}

/** A written-down batch that ClickHouse refuses as a whole. */
export interface RefusedBatch {
  readonly batchId: string
  readonly chunks: readonly HeldChunk[]
  /** Ranges that are not to be sent as one, as they are written down; the whole is one of them. */
  readonly splits: ReadonlySet<string>
  /** As for `Sender.tries`, of what another process may have sent of it. */
  readonly settledMs: number | undefined
}

/**
 * Brings a batch in that ClickHouse refuses as a whole: halves it until the refused rows stand alone, and sets those
 * aside.
 *
 * A range of rows is tried with a token of its own. Before its halves are tried, it is written down as split, and from
 * then on is never tried as a whole again: else ClickHouse, having changed its mind (after a migration, say), could take
 * both the range and its halves. So whoever takes the batch over finds the same ranges, and adds nothing twice.
 */
export class BatchSplitter {
  readonly #deps: SplitterDependencies

  constructor(dependencies: SplitterDependencies) {
    this.#deps = dependencies
  }

  /** @returns whether it was still to be inserted; if not, another worker has done it */
  async insert(batch: RefusedBatch): Promise<boolean> {
    const isPending = await this.#recordSplit(batch.batchId, WHOLE_BATCH)
    if (isPending) await this.#deps.unpacking.run(() => this.#insertUnpacked(batch))
    return isPending
  }

  async #insertUnpacked(batch: RefusedBatch): Promise<void> {
    const rows: string[] = []
    for (const chunk of batch.chunks) {
      const lines = linesOf(chunk.frame)
      if (lines === undefined)
        await this.#setAside(batch, unreadable(chunk), `${batch.batchId}/chunk/${chunk.id}`)
      else rows.push(...lines)
    }
    if (rows.length > 0) await this.#halve({ ...batch, rows }, 0, rows.length)
  }

  async #insertRange(batch: SplitBatch, from: number, to: number): Promise<void> {
    const { batchId, rows, splits, settledMs } = batch
    const { sender, slots, persistence } = this.#deps
    const range = rangeName(from, to)
    if (!splits.has(range)) {
      const token = `${batchId}/${range}`
      const frame = encodeFrame(rows.slice(from, to).join(''))
      // A token of a range says nothing of the larger ranges that were tried before, so its rows are always looked for.
      const send = sender.tries([frame], token, settledMs ?? 0)
      const isSingle = to - from === 1
      const refusal = await persistence.untilDoneOrRefused(
        'part of a batch not inserted',
        () => slots.run(send),
        (failure) => failure === 'poison' || (failure === 'too_big' && !isSingle),
      )
      if (refusal === undefined) return
      if (isSingle) return this.#setAside(batch, refused(refusal, rows[from] ?? ''), token)
      if (!(await this.#recordSplit(batchId, range))) return
    }
    await this.#halve(batch, from, to)
  }

  async #halve(batch: SplitBatch, from: number, to: number): Promise<void> {
    if (to - from === 1) return this.#insertRange(batch, from, to)
    const middle = from + Math.floor((to - from) / 2)
    await this.#insertRange(batch, from, middle)
    await this.#insertRange(batch, middle, to)
  }

  /** @returns whether its parts may be sent */
  #recordSplit(batchId: string, range: string): Promise<boolean> {
    const { ledger, persistence } = this.#deps
    return persistence.untilDone('split not written down', () => ledger.recordSplit(batchId, range))
  }

  async #setAside({ settledMs }: RefusedBatch, letter: DeadLetter, token: string): Promise<void> {
    const { deadLetters, persistence } = this.#deps
    const mayBeThere = settledMs !== undefined
    await persistence.untilDone('dead letter not stored', deadLetters.tries(letter, token, mayBeThere))
    persistence.logger.error({ code: letter.code, token }, 'row set aside as a dead letter')
  }
}

interface SplitBatch extends RefusedBatch {
  /** Of all chunks that can be read, each with its newline. */
  readonly rows: readonly string[]
}

/** The name under which the whole batch is written down as split. */
const WHOLE_BATCH = 'all'

function rangeName(from: number, to: number): string {
  return `${from}-${to}`
}

function unreadable({ frame }: HeldChunk): DeadLetter {
  return {
    code: 'UNREADABLE_CHUNK',
    reason: 'the frame cannot be decompressed',
    text: frame.toString('base64'),
  }
}

function refused(error: unknown, row: string): DeadLetter {
  const reason = error instanceof Error ? error.message : 'unknown'
  return { code: classifyInsertError(error).code, reason, text: rowAsJson(row) ?? row.trimEnd() }
}
