import { expect, it } from 'vitest'
import { MemoryTrend } from '../src/queue-reporter.ts'

let nowMs = 0
const trend = (): MemoryTrend => new MemoryTrend(() => nowMs)
const memory = (usedBytes: number, server = 'redis:1') => ({ server, usedBytes, limitBytes: 1_000 })

it.each<[what: string, readings: [atS: number, usedBytes: number][], headroomS: number]>([
  ['is infinite while nothing is known', [[0, 500]], Infinity],
  [
    'is infinite while memory does not grow',
    [
      [0, 500],
      [10, 500],
      [20, 400],
    ],
    Infinity,
  ],
  [
    'is the free memory divided by the rate of growth',
    [
      [0, 500],
      [10, 600],
    ],
    40,
  ],
  [
    'forgets what was more than five minutes ago',
    [
      [0, 0],
      [100, 500],
      [301, 500],
    ],
    Infinity,
  ],
])('%s', (_what, readings, headroomS) => {
  const its = trend()
  const headrooms = readings.map(([atS, usedBytes]) => {
    nowMs = atS * 1_000
    return its.headroomS(memory(usedBytes))
  })
  expect(headrooms.at(-1)).toBe(headroomS)
})

it('is separate for each server', () => {
  const its = trend()
  nowMs = 0
  for (const server of ['redis:1', 'redis:2']) its.headroomS(memory(500, server))
  nowMs = 10_000
  expect(its.headroomS(memory(500, 'redis:1'))).toBe(Infinity)
  expect(its.headroomS(memory(600, 'redis:2'))).toBe(40)
})
