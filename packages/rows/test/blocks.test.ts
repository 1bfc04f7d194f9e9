import { runsOf } from '@sluice/harness'
import * as fc from 'fast-check'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { insertBody, readJoined, rowsOfBlock, store } from '../src/blocks.ts'
import { columnTypes, rowColumns, rowKey } from '../src/row-codec.ts'
import {
  compressBlock,
  compressedBlockOf,
  framesWithout,
  hasRowOf,
  keysOfFrame,
  rowsOfFrame,
} from '../src/row-frame.ts'
import { anyText } from './support/arbitrary-entry.ts'
import { encodeBlock } from './support/encode-block.ts'

const ids = Array.from({ length: 4 }, (_, i) =>
  `019a-0000-7000-8000-00000000000${i}`.replace('019a', '019a0000'),
)
const rowOf = (i: number, message = 'm', projectId = 'demo'): string => {
  const values: Record<string, string> = {
    project_id: projectId,
    received_at: '2026-11-20 22:43:01.123',
    expires_on: '2026-12-21',
  }
  Object.assign(values, { id: ids[i], timestamp: '2261-12-31 23:59:59.999999', message, metadata_text: '{}' })
  return `${rowColumns.map((name) => values[name] ?? '').join('\t')}\n`
}
const rows = ['a', 'tab\\t and \\\\ é', ''].map((message, i) => rowOf(i, message))
const block = encodeBlock(rows)

it('has the rows that it was made of', () => {
  const both = readJoined(Buffer.concat([block, encodeBlock([]), encodeBlock([rowOf(3)])]))
  expect(both.rows).toBe(4)
  expect(rowsOfBlock(both)).toEqual([...rows, rowOf(3)])
  expect(keysOfFrame(compressBlock(both))).toEqual([...rows, rowOf(3)].map(rowKey))
})

it('has any text as it was', () => {
  fc.assert(
    fc.property(fc.array(anyText(300), { maxLength: 4 }), (texts) => {
      const made = texts.map((text, i) =>
        rowOf(i, text.replaceAll('\\', '\\\\').replaceAll('\t', '\\t').replaceAll('\n', '\\n')),
      )
      expect(rowsOfBlock(readJoined(encodeBlock(made)))).toEqual(made)
    }),
    runsOf(500),
  )
})

const replaced = (at: number, ...bytes: number[]): Buffer => {
  const copy = Buffer.from(block)
  copy.set(bytes, at)
  return copy
}
const head = 1 + rowColumns.length
it.each([
  ['without its last byte', block.subarray(0, -1)],
  ['with another byte', Buffer.concat([block, Buffer.of(1)])],
  ['with another number of rows', replaced(0, 2)],
  ['with a shorter column of texts', replaced(1, 14, 24)],
  ['with a number without an end', Buffer.of(0xff, 0xff)],
  ['with a value that ends after its column', replaced(head, 60)],
  ['with more values in a column', replaced(head, 0)],
  ['with fewer values in a column', replaced(head, 9)],
])('is not a block %s', (_what, bytes) => {
  expect(rowsOfFrame(Buffer.concat([Buffer.of(2), zstdCompressSync(bytes)]))).toBeUndefined()
})

it('is not made of bytes that are not blocks', () => {
  expect(() => compressBlock(readJoined(Buffer.from('not a block')))).toThrow(RangeError)
})

it('becomes an insert with one head and the values of all blocks per column', () => {
  const frame = compressBlock(readJoined(block))
  const blocks = [frame, frame].map(compressedBlockOf).filter((each) => each !== undefined)
  const body = zstdDecompressSync(Buffer.concat([...insertBody(blocks)]))
  const first = Buffer.concat([
    Buffer.of(rowColumns.length, 6),
    Buffer.from(`\nproject_id\u0006String${'\u0004demo'.repeat(6)}`),
  ])
  expect(body.subarray(0, first.length)).toEqual(first)
  for (const name of Object.keys(columnTypes)) expect(body.includes(name)).toBe(true)
})

it.each([0, 1, 131_072, 131_073, 300_000])('stores %i bytes in zstd frames', (length) => {
  const bytes = Buffer.alloc(length, 'content')
  // An empty insert begins with a frame, too.
  expect(zstdDecompressSync(Buffer.concat([store(bytes), store(Buffer.of(1))]))).toEqual(
    Buffer.concat([bytes, Buffer.of(1)]),
  )
})

it.each([
  ['one zstd frame', 'm'],
  ['a zstd frame for each column, if it is large,', 'm'.repeat(120_000)],
])('is compressed as %s whose rows can be found, and left out', (_what, message) => {
  const frame = compressBlock(readJoined(Buffer.concat([block, encodeBlock([rowOf(3, message, 'other')])])))
  expect(frame[0]).toBe(message === 'm' ? 2 : 3)
  expect([['demo'], ['other'], ['demo-2', 'thé'], []].map((projects) => hasRowOf(projects, frame))).toEqual([
    true,
    true,
    false,
    false,
  ])
  expect(framesWithout(new Set(), [frame])).toEqual([frame])
  const [kept] = framesWithout(new Set(ids.slice(0, 2)), [frame])
  expect(kept && rowsOfFrame(kept)).toEqual([rows[2], rowOf(3, message, 'other')])
  const broken = frame.subarray(0, -3)
  expect([rowsOfFrame(broken), hasRowOf(['demo'], broken), framesWithout(new Set(['x']), [broken])]).toEqual([
    undefined,
    false,
    [broken],
  ])
  // ClickHouse would notice damaged values: a frame has a checksum.
  const damaged = Buffer.from(frame)
  damaged[frame.length - 1] = (frame.at(-1) ?? 0) ^ 1
  expect(message === 'm' || rowsOfFrame(damaged) === undefined).toBe(true)
})
