import { zstdDecompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { rowKey } from '../src/row-codec.ts'
import { compressRows, framesWithout, rowsOfFrame } from '../src/row-frame.ts'

/** Rows with ids from a range of numbers. */
const rows = (from: number, to: number): string => {
  let text = ''
  for (let i = from; i < to; i += 1) text += `p\t2026-11-20 22:43:01.123\t2026-12-21\tid-${i}\tgrüße 😀\n`
  return text
}

const idsOf = (frame: Buffer): string[] => (rowsOfFrame(frame) ?? []).map((row) => rowKey(row).id)

describe('compressRows', () => {
  it('makes a zstd frame of the rows in UTF-8', () => {
    expect(zstdDecompressSync(compressRows(rows(0, 3))).toString()).toBe(rows(0, 3))
  })

  it('makes frames that can be concatenated', () => {
    const both = Buffer.concat([compressRows(rows(0, 100)), compressRows(Buffer.from(rows(100, 250)))])
    expect(zstdDecompressSync(both).toString()).toBe(rows(0, 250))
  })
})

describe('rowsOfFrame', () => {
  it('returns each row with its newline', () => {
    expect(rowsOfFrame(compressRows('{"a":1}\n{"b":2}\n'))).toEqual(['{"a":1}\n', '{"b":2}\n'])
  })

  it('splits at newlines only, not at other line separators', () => {
    const text = `{"a":"\u2028\u2029\u0085\r"}\n{"b":2}\n`
    expect(rowsOfFrame(compressRows(text))).toEqual([`{"a":"\u2028\u2029\u0085\r"}\n`, '{"b":2}\n'])
  })

  it('returns the rows of concatenated frames', () => {
    const both = Buffer.concat([compressRows('1\n'), compressRows('2\n')])
    expect(rowsOfFrame(both)).toEqual(['1\n', '2\n'])
  })

  it.each([
    ['an empty buffer', Buffer.alloc(0)],
    ['a buffer that is not a frame', Buffer.from('no frame at all')],
    ['a truncated frame', compressRows(rows(0, 100)).subarray(0, 40)],
  ])('returns undefined for %s', (_what, frame) => {
    expect(rowsOfFrame(frame)).toBeUndefined()
  })
})

describe('framesWithout', () => {
  const frames = [compressRows(rows(0, 3)), compressRows(rows(3, 6))]

  it('removes the rows with these ids, and frames without any other row', () => {
    const kept = framesWithout(new Set(['id-1', 'id-3', 'id-4', 'id-5']), frames)
    expect(kept.map(idsOf)).toEqual([['id-0', 'id-2']])
  })

  it('returns frames without such rows as they are', () => {
    const kept = framesWithout(new Set(['id-0', 'another']), frames)
    expect(kept.map(idsOf)).toEqual([
      ['id-1', 'id-2'],
      ['id-3', 'id-4', 'id-5'],
    ])
    expect(kept[1]).toBe(frames[1])
    expect(framesWithout(new Set(), frames)).toEqual(frames)
  })

  it('returns a frame that cannot be decompressed as it is', () => {
    const broken = Buffer.from('not zstd')
    expect(framesWithout(new Set(['x']), [broken])).toEqual([broken])
  })
})
