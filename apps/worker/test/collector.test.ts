import type { HeldChunk } from '@sluice/queue'
import { describe, expect, it } from 'vitest'
import { Collector } from '../src/collector.ts'

const limits = { chunksMax: 10, rowsMax: 100, bytesMax: 1_000, waitMs: 50 }

function chunk(id: string, rows: number, bytes: number = rows): HeldChunk {
  return { id, rows, bytes, frame: Buffer.alloc(0) }
}

function ids(batch: readonly HeldChunk[] | undefined): string[] | undefined {
  return batch?.map(({ id }) => id)
}

describe('Collector', () => {
  it('has no due batch while it is empty', () => {
    const collector = new Collector(limits)
    expect(collector.dueAtMs).toBeUndefined()
    expect(collector.take(1e9)).toBeUndefined()
  })

  it('returns a batch when its first chunk has waited long enough, and not earlier', () => {
    const collector = new Collector(limits)
    collector.add(chunk('a', 1), 1_000)
    collector.add(chunk('b', 1), 1_049)
    expect(collector.dueAtMs).toBe(1_050)
    expect(collector.take(1_049)).toBeUndefined()
    expect(ids(collector.take(1_050))).toEqual(['a', 'b'])
    expect(collector.dueAtMs).toBeUndefined()
  })

  it('returns a batch at once when the row limit is reached, and keeps chunks that do not fit', () => {
    const collector = new Collector(limits)
    collector.add(chunk('a', 60), 0)
    collector.add(chunk('b', 40), 1)
    collector.add(chunk('c', 1), 2)
    expect(ids(collector.take(2))).toEqual(['a', 'b'])
    expect(collector.take(51)).toBeUndefined()
    expect(ids(collector.take(52))).toEqual(['c'])
  })

  it('returns a batch at once when the byte limit is reached', () => {
    const collector = new Collector(limits)
    collector.add(chunk('a', 1, 600), 0)
    collector.add(chunk('b', 1, 600), 0)
    expect(ids(collector.take(0))).toEqual(['a'])
    expect(collector.take(0)).toBeUndefined()
  })

  it('returns a batch at once when it has exactly as many rows or bytes as the limits allow', () => {
    for (const last of [chunk('b', 99, 1), chunk('b', 1, 999)]) {
      const collector = new Collector(limits)
      collector.add(chunk('a', 1), 0)
      expect(collector.take(1)).toBeUndefined()
      collector.add(last, 1)
      expect(ids(collector.take(1))).toEqual(['a', 'b'])
    }
  })

  it('returns a batch at once when the limit of chunks is reached, and keeps the others', () => {
    const collector = new Collector(limits)
    for (let i = 0; i < limits.chunksMax - 1; i += 1) collector.add(chunk(`a${i}`, 1), i)
    expect(collector.take(9)).toBeUndefined()
    collector.add(chunk('b', 1), 9)
    expect(collector.dueAtMs).toBe(0)
    collector.add(chunk('c', 1), 10)
    expect(collector.take(10)).toHaveLength(limits.chunksMax)
    expect(collector.take(59)).toBeUndefined()
    expect(ids(collector.take(60))).toEqual(['c'])
  })

  it('returns a chunk that exceeds the limits as a separate batch', () => {
    const collector = new Collector(limits)
    collector.add(chunk('a', 5_000), 0)
    collector.add(chunk('b', 1), 0)
    expect(ids(collector.take(0))).toEqual(['a'])
  })

  it('keeps the order in which chunks arrived', () => {
    const collector = new Collector(limits)
    for (const id of ['c', 'a', 'b']) collector.add(chunk(id, 1), 0)
    expect(ids(collector.take(50))).toEqual(['c', 'a', 'b'])
  })

  it('returns all chunks at once after flush, including later ones', () => {
    const collector = new Collector(limits)
    collector.add(chunk('a', 1), 100)
    collector.flush()
    expect(ids(collector.take(100))).toEqual(['a'])
    collector.add(chunk('b', 1), 200)
    expect(ids(collector.take(200))).toEqual(['b'])
  })

  it('returns everything that is collected, due or not, and begins anew', () => {
    const collector = new Collector(limits)
    for (const id of ['a', 'b']) collector.add(chunk(id, 60, 600), 100)
    expect(collector.isEmpty).toBe(false)
    expect(ids(collector.takeAll())).toEqual(['a', 'b'])
    expect(collector.isEmpty).toBe(true)
    expect(collector.takeAll()).toEqual([])
    // Neither the rows nor the bytes that were taken count.
    collector.add(chunk('c', 60, 600), 200)
    expect(collector.take(249)).toBeUndefined()
    expect(ids(collector.take(250))).toEqual(['c'])
  })

  it('counts neither rows nor bytes of a batch that was taken', () => {
    const collector = new Collector(limits)
    for (let round = 0; round < 3; round += 1) {
      collector.add(chunk('a', 60, 600), round * 1_000)
      expect(collector.take(round * 1_000 + 49)).toBeUndefined()
      expect(ids(collector.take(round * 1_000 + 50))).toEqual(['a'])
    }
  })
})
