import { Batch, type BatchResult } from './batch.ts'

/**
 * Splits a batch into halves that are sent on their own. It is settled when they are.
 *
 * The keys of the halves follow from the key of the batch. So if the process ends and the batch is sent and split again, the API
 * recognises the halves.
 */
export function splitBatch(batch: Batch): Batch[] {
  const { entries, idempotencyKey, openedAtMs } = batch
  const middle = Math.ceil(entries.length / 2)
  const halves = [entries.slice(0, middle), entries.slice(middle)].map((half, index) => {
    const part = new Batch(`${idempotencyKey}-${index + 1}`, openedAtMs, { whole: batch })
    for (const entry of half) part.add(entry)
    return part
  })
  void Promise.all(halves.map(({ settled }) => settled)).then((results) => batch.settle(sum(results)))
  return halves
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
