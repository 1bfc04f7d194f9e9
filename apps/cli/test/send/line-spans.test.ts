import { expect, test } from 'vitest'
import { LineSpans } from '../../src/send/line-spans.ts'

test('knows the last line of entries of several lines', () => {
  const spans = new LineSpans()
  spans.add(1, 1)
  spans.add(2, 5)
  expect([1, 2, 6].map((line) => spans.lastLineOf(line))).toEqual([1, 5, 6])
})

test('forgets the oldest of very many entries', () => {
  const spans = new LineSpans()
  for (let line = 0; line < 100_000; line += 2) spans.add(line, line + 1)
  expect(spans.lastLineOf(0)).toBe(0)
  expect(spans.lastLineOf(99_998)).toBe(99_999)
  expect(spans.lastLineOf(90_000)).toBe(90_001)
})
