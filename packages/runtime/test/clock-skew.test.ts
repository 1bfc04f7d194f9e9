import { expect, it } from 'vitest'
import { describeSkew } from '../src/clock-skew.ts'

it.each([
  [1 - 40 * 86_400_000, '40 days behind'],
  [2 * 86_400_000 + 20_000_000, '2 days ahead of'],
  [3_600_000, '1 hour ahead of'],
  [-61_000, '1 minute behind'],
  [-2_000, '2 seconds behind'],
  [400, '0 seconds ahead of'],
])('a skew of %i ms is %s', (skewMs, text) => {
  expect(describeSkew(skewMs)).toBe(text)
})
