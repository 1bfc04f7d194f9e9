import { describe, expect, it } from 'vitest'
import { addIntervalMs, AddPace, paceLimits } from '../../src/chunks/add-pace.ts'
import { type FleetResult, simulateFleet, type SimulatedProcess } from '../support/simulated-fleet.ts'

const { budgetPerS, intervalMaxMs } = paceLimits

describe('the interval', () => {
  it('is practically zero at half of the budget, and grows with the rate', () => {
    expect(addIntervalMs(0)).toBe(0)
    expect(addIntervalMs(budgetPerS / 2)).toBeLessThan(0.001)
    const intervals = [0.7, 0.9, 1, 1.1, 1.3].map((share) => addIntervalMs(share * budgetPerS))
    expect(intervals).toEqual(intervals.toSorted((a, b) => a - b))
  })

  it('is, at the budget, that of a single process that uses the whole budget', () => {
    expect(addIntervalMs(budgetPerS)).toBeCloseTo(1_000 / budgetPerS)
  })

  it('has a maximum', () => {
    expect(addIntervalMs(2 * budgetPerS)).toBe(intervalMaxMs)
    expect(addIntervalMs(1e9)).toBe(intervalMaxMs)
  })
})

describe('the pace', () => {
  const queue = { addsPerS: 10 * budgetPerS }
  let nowMs = 0

  it('lets the first add start at once', () => {
    expect(new AddPace(queue, () => nowMs).waitMs()).toBe(0)
  })

  it('makes the next add wait for the rest of the interval', () => {
    const pace = new AddPace(queue, () => nowMs)
    pace.start()
    expect(pace.waitMs()).toBe(intervalMaxMs)
    nowMs += intervalMaxMs - 1
    expect(pace.waitMs()).toBe(1)
    nowMs += 1
    expect(pace.waitMs()).toBe(0)
  })

  it('has at least the given interval', () => {
    const pace = new AddPace({ addsPerS: 0 }, () => nowMs)
    pace.start()
    expect(pace.waitMs(4)).toBe(4)
    expect(pace.waitMs()).toBe(0)
  })

  it('ignores waits that are far shorter than a timer takes', () => {
    const pace = new AddPace(queue, () => nowMs)
    pace.start()
    nowMs += intervalMaxMs - 0.4
    expect(pace.waitMs()).toBe(0)
  })

  it('follows the rate, even for an add that waits already', () => {
    const rising = { addsPerS: 0 }
    const pace = new AddPace(rising, () => nowMs)
    pace.start()
    expect(pace.waitMs()).toBe(0)
    rising.addsPerS = 10 * budgetPerS
    expect(pace.waitMs()).toBe(intervalMaxMs)
  })
})

const DURATION_MS = 10_000
/** Windows of a quarter of a second. In the first two seconds the fleet converges. */
const SETTLED_WINDOWS = 8
const busy: SimulatedProcess = { requestsPerS: Infinity }
const fleetOf = (count: number, process: SimulatedProcess): SimulatedProcess[] =>
  Array.from({ length: count }, () => process)
const settled = ({ addsPerS }: FleetResult): readonly number[] => addsPerS.slice(SETTLED_WINDOWS)
const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length
const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? 0

describe('a simulated fleet', () => {
  it('of one process is not paced', () => {
    const { addsPerS, waitsMs } = simulateFleet([busy], DURATION_MS)
    expect(mean(addsPerS)).toBeGreaterThan(900)
    // Each request of a busy process waits for the answer to the last add, and for nothing else.
    expect(percentile(waitsMs, 0.9)).toBeLessThan(1)
  })

  it.each([4, 24, 100])(
    'of %d busy processes converges within two seconds, and does not oscillate',
    (count) => {
      const rates = settled(simulateFleet(fleetOf(count, busy), DURATION_MS))
      const expected = budgetPerS * count ** (1 / 13)
      expect(mean(rates) / expected).toBeGreaterThan(0.9)
      expect(mean(rates) / expected).toBeLessThan(1.1)
      expect(Math.max(...rates) / mean(rates)).toBeLessThan(1.15)
      expect(Math.min(...rates) / mean(rates)).toBeGreaterThan(0.85)
    },
  )

  it('of 24 busy processes gives each the same share', () => {
    const { adds } = simulateFleet(fleetOf(24, busy), DURATION_MS)
    expect(Math.max(...adds) / Math.min(...adds)).toBeLessThan(1.2)
  })

  it('of 24 processes with 200 requests a second each stays below 2,000 adds a second', () => {
    const result = simulateFleet(fleetOf(24, { requestsPerS: 200 }), DURATION_MS)
    expect(Math.max(...settled(result))).toBeLessThan(2_000)
    expect(percentile(result.waitsMs, 0.99)).toBeLessThan(intervalMaxMs)
  })

  it('of 24 processes with 20 requests a second each is not paced', () => {
    const { waitsMs } = simulateFleet(fleetOf(24, { requestsPerS: 20 }), DURATION_MS)
    expect(percentile(waitsMs, 0.95)).toBeLessThan(1)
  })

  it('of one busy and 23 nearly idle processes is not paced', () => {
    const { addsPerS, adds } = simulateFleet([busy, ...fleetOf(23, { requestsPerS: 1 })], DURATION_MS)
    expect(mean(addsPerS)).toBeGreaterThan(900)
    expect(adds[0]).toBeGreaterThan(9_000)
  })

  it('includes processes that start late at once, with the same share', () => {
    const late = { ...busy, startMs: 5_000 }
    const { addsPerS, adds } = simulateFleet([...fleetOf(12, busy), ...fleetOf(12, late)], DURATION_MS)
    expect(Math.max(...addsPerS.slice(22))).toBeLessThan(1.15 * budgetPerS * 24 ** (1 / 13))
    const latest = adds.slice(12)
    expect(Math.max(...latest) / Math.min(...latest)).toBeLessThan(1.3)
    // The first twelve had half of the time for themselves.
    expect(mean(adds.slice(0, 12)) / mean(latest)).toBeLessThan(3.5)
  })

  it('of two processes is paced no longer when 22 others have stopped', () => {
    const fleet = [...fleetOf(2, busy), ...fleetOf(22, { ...busy, stopMs: 5_000 })]
    const { addsPerS } = simulateFleet(fleet, DURATION_MS)
    const { addsPerS: alone } = simulateFleet(fleetOf(2, busy), DURATION_MS)
    expect(mean(addsPerS.slice(28)) / mean(alone)).toBeGreaterThan(0.9)
  })

  it.each([
    ['is emptied', () => 0],
    ['is replaced by one that has counted more', (count: number) => count + 1e9],
  ])('continues with the same rate when Redis %s', (_what, change) => {
    let isChanged = false
    const { addsPerS } = simulateFleet(fleetOf(24, busy), DURATION_MS, (nowMs, count) => {
      if (nowMs < 5_000 || isChanged) return count
      isChanged = true
      return change(count)
    })
    const expected = budgetPerS * 24 ** (1 / 13)
    // It may slow down for a second, and must never be much faster.
    expect(Math.max(...addsPerS.slice(20))).toBeLessThan(1.15 * expected)
    expect(Math.min(...addsPerS.slice(20))).toBeGreaterThan(0.2 * expected)
    expect(mean(addsPerS.slice(28)) / expected).toBeGreaterThan(0.85)
  })
})
