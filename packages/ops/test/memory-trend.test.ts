import { expect, it } from 'vitest'
import { MemoryTrend } from '../src/queue-reporter.ts'

let nowMs = 0
const memory = (usedBytes: number, server = 'redis:1') => ({ server, usedBytes, limitBytes: 1_000 })

/** The headroom after each of these readings, at the given times in seconds. */
function headrooms(readings: readonly (readonly [atS: number, usedBytes: number])[]): number[] {
  const trend = new MemoryTrend(() => nowMs)
  return readings.map(([atS, usedBytes]) => {
    nowMs = atS * 1_000
    return trend.headroomS(memory(usedBytes))
  })
}

it('is infinite while nothing is known, and while memory does not grow', () => {
  expect(
    headrooms([
      [0, 500],
      [10, 500],
      [20, 400],
    ]),
  ).toEqual([Infinity, Infinity, Infinity])
})

it('is the free memory divided by the rate of growth', () => {
  // 100 bytes in 10 s, and 400 bytes are left.
  expect(
    headrooms([
      [0, 500],
      [10, 600],
    ])[1],
  ).toBe(40)
})

it('forgets what was more than five minutes ago', () => {
  expect(
    headrooms([
      [0, 0],
      [100, 500],
      [301, 500],
    ])[2],
  ).toBe(Infinity)
})

it('is that of each server', () => {
  const trend = new MemoryTrend(() => nowMs)
  nowMs = 0
  for (const server of ['redis:1', 'redis:2']) trend.headroomS(memory(500, server))
  nowMs = 10_000
  expect(trend.headroomS(memory(500, 'redis:1'))).toBe(Infinity)
  expect(trend.headroomS(memory(600, 'redis:2'))).toBe(40)
})
