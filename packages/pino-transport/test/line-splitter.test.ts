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

it('keeps only the start of a line that is too long', () => {
  const splitter = new LineSplitter()
  const long = 'x'.repeat(1024 * 1024)
  const pieces = [long.slice(1), 'xx', `x\n${long}x\nab\n`]
  expect(pieces.flatMap((piece) => splitter.push(piece))).toEqual([long, long, 'ab'])
})
