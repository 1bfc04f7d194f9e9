import { expect, it } from 'vitest'
import { LineSplitter } from '../src/line-splitter.ts'

it('joins lines that are split anywhere, and skips empty ones', () => {
  const output = 'one\n\ntwo\nthree\n'
  for (let cut = 0; cut <= output.length; cut += 1) {
    const splitter = new LineSplitter()
    const lines = [
      ...splitter.push(output.slice(0, cut)),
      ...splitter.push(output.slice(cut)),
      ...splitter.end(),
    ]
    expect(lines).toEqual(['one', 'two', 'three'])
  }
})

it('returns the last line without a newline at the end, once', () => {
  const splitter = new LineSplitter()
  expect([...splitter.push('one\ntw')]).toEqual(['one'])
  expect([...splitter.push('o')]).toEqual([])
  expect([...splitter.end()]).toEqual(['two'])
  expect([...splitter.end()]).toEqual([])
})

it('skips the lines that end in a piece, and keeps the start of the next one', () => {
  const splitter = new LineSplitter()
  expect([...splitter.push('a')]).toEqual([])
  expect(splitter.skip('b\nc\nd')).toBe(2)
  expect(splitter.skip('e')).toBe(0)
  expect([...splitter.push('f\n')]).toEqual(['def'])
})

it('keeps only the start of a line that is too long', () => {
  const splitter = new LineSplitter(5)
  expect([...splitter.push('123')]).toEqual([])
  expect([...splitter.push('4567')]).toEqual([])
  expect([...splitter.push('89\n1234567\nab\n')]).toEqual(['12345', '12345', 'ab'])
})
