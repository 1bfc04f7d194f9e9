import { zstdDecompressSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { rowKey } from '../src/row-codec.ts'
import { compressRows, framesWithout, rowsOfFrame } from '../src/row-frame.ts'

/** Rows with ids from a range of numbers. */
const rows = (from: number, to: number): string => {
  let text = ''
  for (let i = from; i < to; i += 1) text += `p\t2026-11-20 22:43:01.123\t2026-12-21\tid-${i}\tgrüße 😀\n`
  return text
}

const idsOf = (frame: Buffer): string[] => (rowsOfFrame(frame) ?? []).map((row) => rowKey(row).id)

it('makes zstd frames of rows in UTF-8, which can be concatenated', () => {
  const both = Buffer.concat([compressRows(rows(0, 100)), compressRows(Buffer.from(rows(100, 250)))])
  expect(zstdDecompressSync(both).toString()).toBe(rows(0, 250))
  expect(rowsOfFrame(both)).toHaveLength(250)
})

it('returns each row of a frame with its newline, and splits at no other line separator', () => {
  const text = `{"a":"\u2028\u2029\u0085\r"}\n{"b":2}\n`
  expect(rowsOfFrame(compressRows(text))).toEqual([`{"a":"\u2028\u2029\u0085\r"}\n`, '{"b":2}\n'])
})

it.each([
  ['an empty buffer', Buffer.alloc(0)],
  ['a buffer that is not a frame', Buffer.from('no frame at all')],
  ['a truncated frame', compressRows(rows(0, 100)).subarray(0, 40)],
])('has no rows of %s, which stays as it is', (_what, frame) => {
  expect(rowsOfFrame(frame)).toBeUndefined()
  expect(framesWithout(new Set(['x']), [frame])).toEqual([frame])
})

it('removes the rows with some ids, and frames without any other row, and leaves other frames as they are', () => {
  const frames = [compressRows(rows(0, 3)), compressRows(rows(3, 6)), compressRows(rows(6, 7))]
  const kept = framesWithout(new Set(['id-1', 'id-3', 'id-4', 'id-5', 'another']), frames)
  expect(kept.map(idsOf)).toEqual([['id-0', 'id-2'], ['id-6']])
  expect(kept[1]).toBe(frames[2])
})
