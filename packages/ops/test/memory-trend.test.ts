import { expect, it } from 'vitest'
import { memoryTrend } from '../src/queue-reporter.ts'

it.each<[what: string, readings: string, headroomS: number]>([
  ['is infinite while memory does not grow', '0 500, 10 500, 20 400', Infinity],
  ['is the free memory divided by the rate of growth', '0 500, 10 600', 40],
  ['forgets what was more than five minutes ago', '0 0, 100 500, 301 500', Infinity],
])('%s, for each server', (_what, readings, headroomS) => {
  let nowMs = 0
  const headroomOf = memoryTrend(() => nowMs)
  const headrooms = readings.split(', ').map((reading) => {
    const [atS, usedBytes] = reading.split(' ').map(Number) as [number, number]
    nowMs = atS * 1_000
    headroomOf({ server: 'redis:2', usedBytes: 500, limitBytes: 1_000 })
    return headroomOf({ server: 'redis:1', usedBytes, limitBytes: 1_000 })
  })
  expect(headrooms.at(-1)).toBe(headroomS)
})
