import type { HeldChunk } from '@sluice/queue'
import { describe, expect, it } from 'vitest'
import { BatchScheduler } from '../src/batch-scheduler.ts'
import { Collector } from '../src/collector.ts'

/** A delivery whose batches are settled by the test. */
class FakeDelivery {
  readonly batches: { ids: string[]; settle: PromiseWithResolvers<void> }[] = []

  deliver(chunks: readonly HeldChunk[]): Promise<ReadonlyMap<string, Promise<void>>> {
    const settle = Promise.withResolvers<void>()
    this.batches.push({ ids: chunks.map(({ id }) => id), settle })
    return Promise.resolve(new Map(chunks.map(({ id }) => [id, settle.promise])))
  }
}

const chunk = (id: string): HeldChunk => ({ id, rows: 1, bytes: 1, frame: Buffer.from(id) })

function start(): { scheduler: BatchScheduler; delivery: FakeDelivery } {
  const delivery = new FakeDelivery()
  const collector = new Collector({ rowsMax: 100, bytesMax: 100, waitMs: 60_000 })
  return { scheduler: new BatchScheduler(collector, delivery), delivery }
}

describe('a chunk that is fetched again while it is in hand', () => {
  it('is in its batch once, and both copies get the same result', async () => {
    const { scheduler, delivery } = start()
    const copies = [
      scheduler.deliver(chunk('a')),
      scheduler.deliver(chunk('b')),
      scheduler.deliver(chunk('a')),
    ]
    scheduler.flush()
    copies.push(scheduler.deliver(chunk('a')))
    expect(delivery.batches.map(({ ids }) => ids)).toEqual([['a', 'b']])
    delivery.batches[0]?.settle.resolve()
    await Promise.all(copies)
  })

  it('fails if the first copy fails', async () => {
    const { scheduler, delivery } = start()
    const copies = [scheduler.deliver(chunk('a')), scheduler.deliver(chunk('a'))]
    scheduler.flush()
    delivery.batches[0]?.settle.reject(new Error('no'))
    for (const copy of copies) await expect(copy).rejects.toThrow('no')
  })

  it('is delivered again after the first copy is settled', async () => {
    const { scheduler, delivery } = start()
    const first = scheduler.deliver(chunk('a'))
    scheduler.flush()
    delivery.batches[0]?.settle.resolve()
    await first
    const second = scheduler.deliver(chunk('a'))
    delivery.batches[1]?.settle.resolve()
    await second
    expect(delivery.batches.map(({ ids }) => ids)).toEqual([['a'], ['a']])
  })
})
