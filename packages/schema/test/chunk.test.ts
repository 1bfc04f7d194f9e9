import { zstdDecompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { chunkFrame, encodeChunk, encodeFrame, zstdLines } from '../src/chunk.ts'

const rows = (from: number, to: number): string => {
  let text = ''
  for (let i = from; i < to; i += 1) text += `{"n":${i},"message":"grüße 😀"}\n`
  return text
}

describe('a chunk', () => {
  it('holds the text, its rows and its bytes in UTF-8', () => {
    const text = rows(0, 3)
    const chunk = encodeChunk(3, Buffer.from(text))
    expect(chunk).toMatchObject({ v: 1, rows: 3, bytes: Buffer.byteLength(text) })
    expect(zstdDecompressSync(chunkFrame(chunk)).toString()).toBe(text)
  })

  it('survives JSON, as BullMQ keeps it', () => {
    const chunk = encodeChunk(3, Buffer.from(rows(0, 3)))
    expect(JSON.parse(JSON.stringify(chunk))).toEqual(chunk)
  })

  it('is smaller than its rows', () => {
    const text = rows(0, 500)
    expect(encodeChunk(500, Buffer.from(text)).frame.length).toBeLessThan(text.length / 4)
  })

  it('concatenates: two frames in a row decompress to both texts', () => {
    const [a, b] = [rows(0, 100), rows(100, 250)]
    const both = Buffer.concat([
      chunkFrame(encodeChunk(100, Buffer.from(a))),
      chunkFrame(encodeChunk(150, Buffer.from(b))),
    ])
    expect(zstdDecompressSync(both).toString()).toBe(a + b)
  })

  it('concatenates with a frame that was made by itself', () => {
    const both = Buffer.concat([encodeFrame(rows(0, 2)), chunkFrame(encodeChunk(2, Buffer.from(rows(2, 4))))])
    expect(zstdDecompressSync(both).toString()).toBe(rows(0, 4))
  })
})

describe('zstdLines', () => {
  it('gives each row with its newline', () => {
    expect(zstdLines(encodeFrame('{"a":1}\n{"b":2}\n'))).toEqual(['{"a":1}\n', '{"b":2}\n'])
  })

  it('parts rows at newlines only, not at other line separators', () => {
    const text = `{"a":"\u2028\u2029\u0085\r"}\n{"b":2}\n`
    expect(zstdLines(encodeFrame(text))).toEqual([`{"a":"\u2028\u2029\u0085\r"}\n`, '{"b":2}\n'])
  })

  it('gives the rows of frames that follow one another', () => {
    const both = Buffer.concat([encodeFrame('1\n'), encodeFrame('2\n')])
    expect(zstdLines(both)).toEqual(['1\n', '2\n'])
  })

  it.each([
    ['nothing', Buffer.alloc(0), 'unexpected end of file'],
    ['what is no frame', Buffer.from('no frame at all'), 'Unknown frame descriptor'],
    ['a frame that is cut', encodeFrame(rows(0, 100)).subarray(0, 40), 'unexpected end of file'],
  ])('throws for %s', (_what, frame, message) => {
    expect(() => zstdLines(frame)).toThrow(message)
  })
})
