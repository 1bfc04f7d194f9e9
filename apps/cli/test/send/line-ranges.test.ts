import { InvalidArgumentError } from 'commander'
import { expect, test } from 'vitest'
import { formatLineRanges, linesToSkip, parseLineRanges } from '../../src/send/line-ranges.ts'

test.each([
  ['58500', '58500'],
  ['0', ''],
  ['5-7', '5-7'],
  ['301-400,1-200,201-250,240-245', '1-250,301-400'],
])('%s is sorted and joined to "%s"', (text, formatted) => {
  expect(formatLineRanges(parseLineRanges(text))).toBe(formatted)
})

test.each(['', '-1', '1.5', 'many', '1-', '-5', '0-5', '5-1', '1-2,', '1-2,3', '1 - 2'])(
  'rejects "%s"',
  (text) => {
    expect(() => parseLineRanges(text)).toThrow(InvalidArgumentError)
  },
)

test.each([
  ['nothing was read', 0, '0', '0', ''],
  ['no request failed', 500, '0', '0', '500'],
  ['the first request failed', 300, '1-100', '0', '101-300'],
  ['the last request failed', 300, '201-300', '0', '200'],
  ['requests in the middle failed', 500, '301-400,101-200', '0', '1-100,201-300,401-500'],
  ['lines were skipped before', 250, '201-250', '1-100,301-400', '1-200,301-400'],
  ['a failed request is around skipped lines', 450, '251-450', '301-400', '1-250,301-400'],
])('the lines to skip when %s', (_name, handled, unanswered, skipped, expected) => {
  const failed = parseLineRanges(unanswered).toReversed()
  expect(formatLineRanges(linesToSkip(handled, failed, parseLineRanges(skipped)))).toBe(expected)
})
