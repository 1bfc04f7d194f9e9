import { beforeEach, expect, it } from 'vitest'
import { LagWindow } from '../src/worker-metrics.ts'

let nowMs: number
let window: LagWindow

beforeEach(() => {
  nowMs = 1_000
  window = new LagWindow(() => nowMs)
})

it('has the number of chunks, the mean and the maximum, and forgets a chunk after a minute, five seconds late at most', () => {
  expect(window.read()).toBeUndefined()
  window.add(9)
  nowMs += 30_000
  window.add(1)
  window.add(2)
  nowMs += 30_000
  expect(window.read()).toEqual({ chunks: 3, meanS: 4, maxS: 9 })
  nowMs += 5_000
  expect(window.read()).toEqual({ chunks: 2, meanS: 1.5, maxS: 2 })
  nowMs += 60_000
  expect(window.read()).toBeUndefined()
})

it('keeps what a minute needs, however many chunks there are', () => {
  for (let n = 0; n < 10_000; n += 1) {
    window.add(1)
    nowMs += 100
  }
  expect(window.read()?.chunks).toBeGreaterThanOrEqual(600)
  expect(window.read()?.chunks).toBeLessThanOrEqual(650)
})
