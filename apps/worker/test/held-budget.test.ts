import { integer, seededRandom } from '@sluice/harness'
import { describe, expect, it } from 'vitest'
import { HeldBudget, type HeldShare } from '../src/held-budget.ts'

const TOTAL = 100

function shares(count: number): HeldShare[] {
  const budget = new HeldBudget(TOTAL)
  return Array.from({ length: count }, () => budget.share())
}

describe('a share', () => {
  it('of a single shard is the total', () => {
    const [only] = shares(1)
    expect(only?.room()).toBe(TOTAL)
    only?.set(30)
    expect(only?.room()).toBe(TOTAL - 30)
  })

  it('can use half of the total in addition to its reserved part', () => {
    const [first, ...others] = shares(4)
    // The half that is divided equally has 12.5 for each of four shards.
    expect(first?.room()).toBe(62)
    first?.set(62)
    expect(first?.room()).toBe(0)
    for (const other of others) expect(other.room()).toBe(13)
  })

  it('that is stuck cannot use the reserved part of another one', () => {
    const [stuck, other] = shares(2)
    stuck?.set(75)
    expect(stuck?.room()).toBe(0)
    expect(other?.room()).toBe(25)
    // A fetch may return more bytes than there was room for.
    stuck?.set(1_000)
    expect(other?.room()).toBe(25)
    other?.set(25)
    expect(other?.room()).toBe(0)
    other?.set(10)
    expect(other?.room()).toBe(15)
  })

  it('gives back what it does not hold any more', () => {
    const [first, second] = shares(2)
    first?.set(75)
    first?.set(0)
    expect(second?.room()).toBe(75)
  })

  it('becomes smaller when a shard is added', () => {
    const budget = new HeldBudget(TOTAL)
    const first = budget.share()
    budget.share()
    expect(first.room()).toBe(75)
  })
})

it('never grants more than the total, and never less than the reserved part', () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const random = seededRandom(seed)
    const all = shares(integer(random, 1, 8))
    const held = all.map(() => 0)
    for (let step = 0; step < 50; step += 1) {
      const shard = integer(random, 0, all.length - 1)
      const room = all[shard]?.room() ?? 0
      const before = held[shard] ?? 0
      expect(before + room, `seed ${seed}`).toBeGreaterThanOrEqual(Math.floor(TOTAL / 2 / all.length))
      const now = random() < 0.3 ? integer(random, 0, before) : before + integer(random, 0, room)
      held[shard] = now
      all[shard]?.set(now)
      expect(
        held.reduce((sum, count) => sum + count, 0),
        `seed ${seed}`,
      ).toBeLessThanOrEqual(TOTAL)
    }
  }
})
