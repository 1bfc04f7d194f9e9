import { expect, it } from 'vitest'
import { Watermark } from '../../src/overload/watermark.ts'

/** Whether it is over after each of the values. */
function statesOf(values: readonly number[]): boolean[] {
  const watermark = new Watermark({ high: 10, low: 5 })
  return values.map((value) => {
    watermark.update(value)
    return watermark.isOver
  })
}

it('is over from its high mark on', () => {
  expect(statesOf([0, 9.9, 10])).toEqual([false, false, true])
})

it('stays over until it is down at its low mark, and is under until it is up again', () => {
  expect(statesOf([11, 9, 5.1, 5, 9, 10])).toEqual([true, true, true, false, false, true])
})

it('that was tripped stays over until a value is low', () => {
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
])('takes no marks that are not in order: %j', (marks) => {
  expect(() => new Watermark(marks)).toThrow(RangeError)
})
