import { beforeEach, describe, expect, it } from 'vitest'
import { AddRate } from '../src/add-rate.ts'

let rate: AddRate
let nowMs: number
let count: number

beforeEach(() => {
  rate = new AddRate()
  nowMs = 5_000
  count = 1_000_000
  rate.record(count, nowMs)
})

/** An answer some time after the last one. Meanwhile all processes added at this rate. */
const answerAfter = (ms: number, perS: number): void => {
  nowMs += ms
  count += (perS * ms) / 1_000
  rate.record(count, nowMs)
}
const answersFor = (totalMs: number, perS: number, everyMs = 50): void => {
  for (let ms = 0; ms < totalMs; ms += everyMs) answerAfter(everyMs, perS)
}

describe('the rate of adds', () => {
  it('is 0 after one answer, however many adds Redis has counted', () => {
    expect(rate.perS).toBe(0)
  })

  it('is known after the second answer', () => {
    answerAfter(60, 2_000)
    expect(rate.perS).toBe(2_000)
  })

  it.each([1, 7, 50, 130, 3_000])('is that of the counter if there is an answer every %d ms', (everyMs) => {
    answersFor(10_000, 3_000, everyMs)
    expect(rate.perS).toBeCloseTo(3_000)
  })

  it('is a mean: one answer that arrives late changes it little', () => {
    answersFor(2_000, 1_000)
    rate.record(count + 50, nowMs + 150)
    rate.record(count + 200, nowMs + 200)
    expect(rate.perS).toBeGreaterThan(900)
    expect(rate.perS).toBeLessThan(1_150)
  })

  it.each([
    [0, 4_000],
    [4_000, 0],
  ])('follows a change from %d to %d within seconds', (before, after) => {
    answersFor(2_000, before)
    answersFor(300, after)
    expect(Math.abs(rate.perS - before)).toBeGreaterThan(700)
    answersFor(4_000, after)
    expect(Math.abs(rate.perS - after)).toBeLessThan(100)
  })

  it('forgets what was before a pause, and is the mean of the pause', () => {
    answersFor(2_000, 4_000)
    answerAfter(600_000, 10)
    expect(rate.perS).toBeCloseTo(10)
  })
})

describe('another counter', () => {
  it('that is smaller is measured from its first answer, and the rate stays until the second one', () => {
    answersFor(2_000, 1_000)
    count = 3
    answerAfter(60, 0)
    expect(rate.perS).toBeCloseTo(1_000)
    answersFor(5_000, 500)
    expect(rate.perS).toBeGreaterThan(490)
    expect(rate.perS).toBeLessThan(510)
  })

  it('that is far larger is forgotten within seconds', () => {
    answersFor(2_000, 1_000)
    count += 1e12
    answerAfter(60, 1_000)
    expect(rate.perS).toBeLessThan(1_700)
    answersFor(3_000, 1_000)
    expect(rate.perS).toBeLessThan(1_050)
  })
})
