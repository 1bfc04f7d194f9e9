import type { HeldChunk } from '@sluice/queue'
import { integer, seededRandom } from '@sluice/harness'
import { beforeEach, describe, expect, it } from 'vitest'
import { Collector, heldBudget, type HeldShare } from '../src/collector.ts'

const limits = { chunksMax: 10, rowsMax: 100, bytesMax: 1_000, waitMs: 50 }

function chunk(id: string, rows: number, bytes: number = rows): HeldChunk {
  return { id, rows, bytes, frame: Buffer.alloc(0) }
}

function ids(batch: readonly HeldChunk[] | undefined): string[] | undefined {
  return batch?.map(({ id }) => id)
}

const TEN = Array.from({ length: limits.chunksMax }, (_, index) => String(index))
const last = chunk('c', 1)

describe('a collector', () => {
  let collector: Collector

  beforeEach(() => {
    collector = new Collector(limits)
  })

  it('returns a batch when its first chunk has waited long enough, and not earlier', () => {
    expect([collector.dueAtMs, collector.take(1e9)]).toEqual([undefined, undefined])
    collector.add(chunk('a', 1), 1_000)
    collector.add(chunk('b', 1), 1_049)
    expect(collector.dueAtMs).toBe(1_050)
    expect(collector.take(1_049)).toBeUndefined()
    expect(ids(collector.take(1_050))).toEqual(['a', 'b'])
    expect(collector.dueAtMs).toBeUndefined()
  })

  it.each<[what: string, chunks: HeldChunk[], fullAt: number, batch: string[]]>([
    ['as many rows as it may, to the last one', [chunk('a', 1), chunk('b', 99, 1), last], 2, ['a', 'b']],
    ['as many bytes as it may, to the last one', [chunk('a', 1), chunk('b', 1, 999), last], 2, ['a', 'b']],
    ['more bytes than it may', [chunk('a', 1, 600), chunk('c', 1, 600)], 2, ['a']],
    ['more rows than it may in one chunk', [chunk('a', 5_000), last], 1, ['a']],
    ['as many chunks as it may', [...TEN, 'c'].map((id) => chunk(id, 1)), limits.chunksMax, TEN],
  ])('returns a batch at once when there are %s, and keeps the rest', (_what, chunks, fullAt, batch) => {
    for (const [index, each] of chunks.entries()) {
      collector.add(each, index)
      expect(collector.dueAtMs).toBe(index + 1 < fullAt ? limits.waitMs : 0)
    }
    expect(ids(collector.take(0))).toEqual(batch)
    const dueAtMs = chunks.length - 1 + limits.waitMs
    expect(collector.take(dueAtMs - 1)).toBeUndefined()
    expect(ids(collector.take(dueAtMs))).toEqual(['c'])
  })

  it('returns everything that is collected, due or not, and begins anew. After flush, all chunks are due at once', () => {
    for (const id of ['a', 'b']) collector.add(chunk(id, 60, 600), 100)
    expect(ids(collector.takeAll())).toEqual(['a', 'b'])
    expect(collector.isEmpty).toBe(true)
    // Neither the rows nor the bytes that were taken count.
    collector.add(chunk('c', 60, 600), 200)
    expect(collector.isEmpty).toBe(false)
    expect(collector.take(249)).toBeUndefined()
    collector.flush()
    expect(ids(collector.take(200))).toEqual(['c'])
    collector.add(chunk('d', 1), 300)
    expect(ids(collector.take(300))).toEqual(['d'])
  })

  it('takes chunks that are apart in turn with others, and all when there are no others', () => {
    const add = (id: string, isApart: boolean): void => collector.add(chunk(id, 1), 0, isApart)
    for (const id of ['a', 'B', 'c', 'D']) add(id, id < 'a')
    const taken = [collector.take(50)]
    add('e', false)
    taken.push(collector.take(50))
    add('F', true)
    for (let i = 0; i < 3; i += 1) taken.push(collector.take(50))
    expect(taken.map(ids)).toEqual([['a', 'c'], ['B', 'D'], ['e'], ['F'], undefined])
  })
})

const TOTAL = 100

function shares(count: number): HeldShare[] {
  const budget = heldBudget(TOTAL)
  return Array.from({ length: count }, () => budget.share())
}

describe('a share', () => {
  it('can use half of the total in addition to its reserved part', () => {
    const [first, ...others] = shares(4)
    // The half that is divided equally has 12.5 for each of four shards.
    expect(first?.room()).toBe(62)
    first?.set(62)
    expect(first?.room()).toBe(0)
    for (const other of others) expect(other.room()).toBe(13)
    // A fetch may return more bytes than there was room for.
    first?.set(1_000)
    expect(others[0]?.room()).toBe(12)
  })

  it('becomes smaller when a shard is added', () => {
    const budget = heldBudget(TOTAL)
    const first = budget.share()
    first.set(30)
    expect(first.room()).toBe(TOTAL - 30)
    budget.share()
    expect(first.room()).toBe(75 - 30)
  })

  it('never grants more than the total, and never less than the reserved part', () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const random = seededRandom(seed)
      const all = shares(integer(random, 1, 8))
      const held = all.map(() => 0)
      for (let step = 0; step < 50; step += 1) {
        const shard = integer(random, 0, all.length - 1)
        const [room, before] = [all[shard]?.room() ?? 0, held[shard] ?? 0]
        expect(before + room, `seed ${seed}`).toBeGreaterThanOrEqual(Math.floor(TOTAL / 2 / all.length))
        const now = random() < 0.3 ? integer(random, 0, before) : before + integer(random, 0, room)
        held[shard] = now
        all[shard]?.set(now)
        const sum = held.reduce((total, count) => total + count, 0)
        expect(sum, `seed ${seed}`).toBeLessThanOrEqual(TOTAL)
      }
    }
  })
})
