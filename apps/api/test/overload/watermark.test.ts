import { expect, it } from 'vitest'
import { Watermark } from '../../src/overload/watermark.ts'

/** Whether the signal is over after each of the values. */
function statesOf(values: readonly number[]): boolean[] {
  const watermark = new Watermark({ high: 10, low: 5 })
  return values.map((value) => {
    watermark.update(value)
    return watermark.isOver
  })
}

it('is over at its high-water mark and above', () => {
  expect(statesOf([0, 9.9, 10])).toEqual([false, false, true])
})

it('stays over until its low-water mark, and then under until its high-water mark', () => {
  expect(statesOf([11, 9, 5.1, 5, 9, 10])).toEqual([true, true, true, false, false, true])
})

it('stays over after it was tripped, until a value is at the low-water mark', () => {
  const watermark = new Watermark({ high: 10, low: 5 })
  watermark.trip()
  expect(watermark).toMatchObject({ isOver: true, value: undefined })
  watermark.update(6)
  expect(watermark).toMatchObject({ isOver: true, value: 6 })
  watermark.update(4)
  expect(watermark.isOver).toBe(false)
})

it.each([
  { high: 5, low: 5 },
  { high: 5, low: 6 },
  { high: 5, low: Number.NaN },
])('rejects thresholds in the wrong order: %j', (thresholds) => {
  expect(() => new Watermark(thresholds)).toThrow(RangeError)
})
