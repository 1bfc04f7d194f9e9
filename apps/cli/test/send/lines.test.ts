import { describe, expect, test } from 'vitest'
import { type Line, LineSplitter } from '../../src/send/lines.ts'

/** The lines of a text that arrives in pieces of `pieceBytes`. */
function split(text: string | Buffer, pieceBytes: number, lineBytesMax = 1_000): Line[] {
  const splitter = new LineSplitter(lineBytesMax)
  const bytes = Buffer.from(text as string)
  const lines: Line[] = []
  for (let from = 0; from < bytes.length; from += pieceBytes) {
    lines.push(...splitter.push(bytes.subarray(from, from + pieceBytes)))
  }
  lines.push(...splitter.end())
  return lines
}

const texts = (lines: readonly Line[]): (string | undefined)[] => lines.map(({ text }) => text)

describe.each([1, 2, 3, 7, 1_000])('in pieces of %i bytes', (pieceBytes) => {
  test('lines end in LF or CRLF; the last line needs no line ending', () => {
    expect(texts(split('a\nbc\r\n\n\r\nd', pieceBytes))).toEqual(['a', 'bc', '', '', 'd'])
    expect(texts(split('a\n', pieceBytes))).toEqual(['a'])
    expect(texts(split('', pieceBytes))).toEqual([])
  })

  test('a carriage return within a line is kept', () => {
    expect(texts(split('a\rb\r\r\n', pieceBytes))).toEqual(['a\rb\r'])
  })

  test('NUL bytes before a line count, and do not belong to it', () => {
    const lines = split(`\0\0\0\0\0\0\0a\0b\n\0\n\0\0c`, pieceBytes, 5)
    expect(lines.map(({ text, bytes }) => [text, bytes])).toEqual([
      ['a\0b', 11],
      ['', 2],
      ['c', 3],
    ])
    expect(split('a\n\0\0', pieceBytes)).toHaveLength(1)
  })

  test('characters stay whole wherever the pieces end', () => {
    expect(texts(split('Ä東👩‍💻\nß', pieceBytes))).toEqual(['Ä東👩‍💻', 'ß'])
  })

  test('a line that is too long is yielded without its text, and the next line is read', () => {
    const lines = split('12345\n123456\r\n12345\r\n1234567890123\nx', pieceBytes, 5)
    expect(lines.map(({ number, text }) => [number, text])).toEqual([
      [1, '12345'],
      [2, undefined],
      [3, '12345'],
      [4, undefined],
      [5, 'x'],
    ])
  })

  test('the sizes of the lines add up to that of the text', () => {
    const text = '\uFEFFÄ\r\n\n123456789\n\r\nlast'
    const sizes = split(text, pieceBytes, 5).map(({ bytes }) => bytes)
    expect(sizes).toEqual([7, 1, 10, 2, 4])
    expect(sizes.reduce((sum, size) => sum + size)).toBe(Buffer.byteLength(text))
  })

  test('invalid UTF-8 is repaired and flagged', () => {
    const lines = split(Buffer.from([0x61, 0xe4, 0x0a, 0x62]), pieceBytes)
    expect(lines).toEqual([
      { number: 1, text: 'a\uFFFD', bytes: 3, wasUtf8: false },
      { number: 2, text: 'b', bytes: 1, wasUtf8: true },
    ])
  })

  test('a byte order mark is removed, but only at the beginning', () => {
    expect(texts(split('\uFEFFa\n\uFEFFb', pieceBytes))).toEqual(['a', '\uFEFFb'])
  })
})
