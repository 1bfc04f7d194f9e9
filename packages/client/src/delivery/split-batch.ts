import type { SpoolRecord } from '../spool.ts'
import { Batch, type BatchResult } from './batch.ts'

/**
 * Splits a batch into halves that are sent on their own. It is settled when they are.
 *
 * The keys of the halves follow from the key of the batch. If the process ends before the record of the batch is removed, and the batch is
 * split again, the API recognises the halves.
 *
 * @param createRecord for the half with this key
 */
export function splitBatch(
  batch: Batch,
  createRecord: (idempotencyKey: string) => SpoolRecord | undefined,
): Batch[] {
  const { entries, idempotencyKey, openedAtMs } = batch
  const middle = Math.ceil(entries.length / 2)
  const halves = [entries.slice(0, middle), entries.slice(middle)].map((half, index) => {
    const key = `${idempotencyKey}-${index + 1}`
    const part = new Batch(key, openedAtMs, { record: createRecord(key) })
    for (const entry of half) part.add(entry)
    return part
  })
  void settleWith(batch, halves)
  return halves
}

async function settleWith(batch: Batch, halves: readonly Batch[]): Promise<void> {
  batch.settle(sum(await Promise.all(halves.map(({ settled }) => settled))))
}

function sum(results: readonly BatchResult[]): BatchResult {
  const total = { accepted: 0, rejected: 0, dropped: 0, kept: 0 }
  for (const { accepted, rejected, dropped, kept } of results) {
    total.accepted += accepted
    total.rejected += rejected
    total.dropped += dropped
    total.kept += kept
  }
  return total
}
