import { describe, expect, it } from 'vitest'
import { Collector, type HeldChunk } from '../src/collector.ts'
import { Pump } from '../src/pump.ts'

/** A delivery whose batches wait for the test. */
class FakeDelivery {
  readonly batches: { ids: string[]; settle: PromiseWithResolvers<void> }[] = []

  deliver(chunks: readonly HeldChunk[]): Promise<ReadonlyMap<string, Promise<void>>> {
    const settle = Promise.withResolvers<void>()
    this.batches.push({ ids: chunks.map(({ id }) => id), settle })
    return Promise.resolve(new Map(chunks.map(({ id }) => [id, settle.promise])))
  }
}

const chunk = (id: string): HeldChunk => ({ id, rows: 1, bytes: 1, frame: Buffer.from(id) })

function start(): { pump: Pump; delivery: FakeDelivery } {
  const delivery = new FakeDelivery()
  const collector = new Collector({ rowsMax: 100, bytesMax: 100, waitMs: 60_000 })
  return { pump: new Pump(collector, delivery), delivery }
}

describe('a chunk that comes again while it is in hand', () => {
  it('is in its batch once, and both copies learn what became of it', async () => {
    const { pump, delivery } = start()
    const copies = [pump.deliver(chunk('a')), pump.deliver(chunk('b')), pump.deliver(chunk('a'))]
    pump.flush()
    copies.push(pump.deliver(chunk('a')))
    expect(delivery.batches.map(({ ids }) => ids)).toEqual([['a', 'b']])
    delivery.batches[0]?.settle.resolve()
    await Promise.all(copies)
  })

  it('fails with it', async () => {
    const { pump, delivery } = start()
    const copies = [pump.deliver(chunk('a')), pump.deliver(chunk('a'))]
    pump.flush()
    delivery.batches[0]?.settle.reject(new Error('no'))
    for (const copy of copies) await expect(copy).rejects.toThrow('no')
  })

  it('is delivered anew once the first is settled', async () => {
    const { pump, delivery } = start()
    const first = pump.deliver(chunk('a'))
    pump.flush()
    delivery.batches[0]?.settle.resolve()
    await first
    const second = pump.deliver(chunk('a'))
    delivery.batches[1]?.settle.resolve()
    await second
    expect(delivery.batches.map(({ ids }) => ids)).toEqual([['a'], ['a']])
  })
})
