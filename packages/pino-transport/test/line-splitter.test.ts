import { expect, it } from 'vitest'
import { LineSplitter } from '../src/line-splitter.ts'

it('joins lines that are split anywhere, skips empty ones, and returns the last one once', () => {
  const output = 'one\n\ntwo\nthree'
  for (let cut = 0; cut <= output.length; cut += 1) {
    const splitter = new LineSplitter()
    const lines = [...splitter.push(output.slice(0, cut)), ...splitter.push(output.slice(cut))]
    expect([...lines, ...splitter.end(), ...splitter.end()]).toEqual(['one', 'two', 'three'])
  }
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
  const lines = ['123', '4567', '89\n1234567\nab\n'].flatMap((piece) => Array.from(splitter.push(piece)))
  expect(lines).toEqual(['12345', '12345', 'ab'])
})
