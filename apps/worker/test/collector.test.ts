import { describe, expect, it } from 'vitest'
import { Collector, type HeldChunk } from '../src/collector.ts'

const limits = { rowsMax: 100, bytesMax: 1_000, waitMs: 50 }

function chunk(id: string, rows: number, bytes: number = rows): HeldChunk {
  return { id, rows, bytes, frame: Buffer.alloc(0) }
}

function ids(batch: readonly HeldChunk[] | undefined): string[] | undefined {
  return batch?.map(({ id }) => id)
}

describe('Collector', () => {
  it('has nothing due while it is empty', () => {
    const collector = new Collector(limits)
    expect(collector.dueAtMs).toBeUndefined()
    expect(collector.take(1e9)).toBeUndefined()
  })

  it('gives a batch when its first chunk has waited long enough, not before', () => {
    const collector = new Collector(limits)
    collector.add(chunk('a', 1), 1_000)
    collector.add(chunk('b', 1), 1_049)
    expect(collector.dueAtMs).toBe(1_050)
    expect(collector.take(1_049)).toBeUndefined()
    expect(ids(collector.take(1_050))).toEqual(['a', 'b'])
    expect(collector.dueAtMs).toBeUndefined()
  })

  it('gives a batch at once when the rows are full, and keeps what does not fit', () => {
    const collector = new Collector(limits)
    collector.add(chunk('a', 60), 0)
    collector.add(chunk('b', 40), 1)
    collector.add(chunk('c', 1), 2)
    expect(ids(collector.take(2))).toEqual(['a', 'b'])
    expect(collector.take(51)).toBeUndefined()
    expect(ids(collector.take(52))).toEqual(['c'])
  })

  it('gives a batch at once when the bytes are full', () => {
    const collector = new Collector(limits)
    collector.add(chunk('a', 1, 600), 0)
    collector.add(chunk('b', 1, 600), 0)
    expect(ids(collector.take(0))).toEqual(['a'])
    expect(collector.take(0)).toBeUndefined()
  })

  it('gives a chunk that is over the limits by itself, alone', () => {
    const collector = new Collector(limits)
    collector.add(chunk('a', 5_000), 0)
    collector.add(chunk('b', 1), 0)
    expect(ids(collector.take(0))).toEqual(['a'])
  })

  it('keeps the order in which chunks came', () => {
    const collector = new Collector(limits)
    for (const id of ['c', 'a', 'b']) collector.add(chunk(id, 1), 0)
    expect(ids(collector.take(50))).toEqual(['c', 'a', 'b'])
  })

  it('gives everything at once after flush, later chunks included', () => {
    const collector = new Collector(limits)
    collector.add(chunk('a', 1), 100)
    collector.flush()
    expect(ids(collector.take(100))).toEqual(['a'])
    collector.add(chunk('b', 1), 200)
    expect(ids(collector.take(200))).toEqual(['b'])
  })
})
