import { InvalidArgumentError } from 'commander'
import { describe, expect, test } from 'vitest'
import {
  firstLineOutside,
  formatLineRanges,
  linesToSkip,
  parseLineRanges,
} from '../../src/send/line-ranges.ts'

const range = (first: number, last: number) => ({ first, last })

describe('parseLineRanges', () => {
  test.each([
    ['58500', [range(1, 58_500)]],
    ['0', []],
    ['1-200,301-400', [range(1, 200), range(301, 400)]],
    ['301-400,1-200,201-250,240-245', [range(1, 250), range(301, 400)]],
  ])('parses %s, and sorts and joins ranges', (text, ranges) => {
    expect(parseLineRanges(text)).toEqual(ranges)
  })

  test.each(['', '-1', '1.5', 'many', '1-', '-5', '0-5', '5-1', '1-2,', '1-2,3', '1 - 2'])(
    'rejects "%s"',
    (text) => {
      expect(() => parseLineRanges(text)).toThrow(InvalidArgumentError)
    },
  )

  test('rejects too many ranges', () => {
    const text = Array.from({ length: 101 }, (_, index) => `${index * 2 + 1}-${index * 2 + 1}`).join(',')
    expect(() => parseLineRanges(text)).toThrow('at most 100 ranges')
  })
})

test.each(['58500', '1-200,301-400', '5-7'])('formatLineRanges is the opposite: %s', (text) => {
  expect(formatLineRanges(parseLineRanges(text))).toBe(text)
})

test('formatLineRanges of nothing is empty', () => {
  expect(formatLineRanges([])).toBe('')
})

describe('linesToSkip', () => {
  test.each([
    ['nothing was read', 0, [], [], []],
    ['no request failed', 500, [], [], [range(1, 500)]],
    ['the first request failed', 300, [range(1, 100)], [], [range(101, 300)]],
    ['the last requests failed', 300, [range(201, 300), range(101, 200)], [], [range(1, 100)]],
    [
      'requests in the middle failed',
      500,
      [range(301, 400), range(101, 200)],
      [],
      [range(1, 100), range(201, 300), range(401, 500)],
    ],
    [
      'lines were skipped before',
      250,
      [range(201, 250)],
      [range(1, 100), range(301, 400)],
      [range(1, 200), range(301, 400)],
    ],
    [
      'a failed request is around skipped lines',
      450,
      [range(251, 450)],
      [range(301, 400)],
      [range(1, 250), range(301, 400)],
    ],
  ])('when %s', (_name, handled, unanswered, skipped, expected) => {
    expect(linesToSkip(handled, unanswered, skipped)).toEqual(expected)
  })
})

test.each([
  ['58500', 58_501],
  ['1-200,301-400', 201],
  ['5-7', 1],
  ['0', 1],
])('firstLineOutside of %s is %i', (text, line) => {
  expect(firstLineOutside(parseLineRanges(text))).toBe(line)
})
