import { rowColumns } from '@sluice/rows'
import { zstdDecompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import {
  type Chunk,
  columnsHash,
  decodeChunk,
  encodeChunk,
  isKnownFormat,
  readJobData,
} from '../src/chunk.ts'

const rows = (from: number, to: number): string => {
  let text = ''
  for (let i = from; i < to; i += 1) text += `{"n":${i},"message":"grüße 😀"}\n`
  return text
}

const isKnown = ({ v, columns }: Partial<Chunk>): boolean => isKnownFormat(v, columns)

/** The trace that a worker gets from a job with this data. */
const traceOf = (data: object): unknown => {
  const read = readJobData(JSON.stringify(data))
  return read.kind === 'chunk' ? decodeChunk('id', read.chunk).trace : read.kind
}

const frameOf = (chunk: Chunk): Buffer => decodeChunk('id', chunk).frame

describe('a chunk', () => {
  it('has the rows, and their number and bytes in UTF-8', () => {
    const text = rows(0, 3)
    const chunk = encodeChunk(3, Buffer.from(text))
    expect(chunk).toMatchObject({ v: 1, rows: 3, bytes: Buffer.byteLength(text) })
    expect(decodeChunk('its-id', chunk)).toMatchObject({ id: 'its-id', rows: 3, bytes: chunk.bytes })
    expect(zstdDecompressSync(frameOf(chunk)).toString()).toBe(text)
  })

  it('has a frame that can be concatenated with the frames of other chunks', () => {
    const [a, b] = [rows(0, 100), rows(100, 250)]
    const both = Buffer.concat([
      frameOf(encodeChunk(100, Buffer.from(a))),
      frameOf(encodeChunk(150, Buffer.from(b))),
    ])
    expect(zstdDecompressSync(both).toString()).toBe(a + b)
  })
})

describe('the columns of a chunk', () => {
  const chunk = encodeChunk(1, Buffer.from(rows(0, 1)))
  const { columns: _columns, ...earlierChunk } = chunk
  const names: readonly string[] = rowColumns

  // If this test fails, a column was added, removed or moved. CONTRIBUTING.md says what happens to chunks that are in the queue. The hash
  // of earlier chunks, which have no `columns`, never changes.
  it('are the columns of the first version', () => {
    expect(rowColumns.join(' ')).toBe(
      'project_id received_at expires_on id timestamp level environment source service url pathname message stack metadata_text',
    )
    expect(chunk.columns).toBe('d6544c43')
    expect(isKnown(earlierChunk)).toBe(true)
  })

  it('are known if they are the columns of this process', () => {
    expect(isKnown(chunk)).toBe(true)
    expect(isKnown({ ...chunk, columns: columnsHash(rowColumns) })).toBe(true)
  })

  it.each([
    ['one more', [...names, 'region']],
    ['one less', names.slice(0, -1)],
    ['two exchanged', [...names.slice(0, -2), ...names.slice(-2).toReversed()]],
    ['another name', [...names.slice(0, -1), 'metadata']],
  ])('are unknown with %s', (_what, columns) => {
    expect(isKnown({ ...chunk, columns: columnsHash(columns) })).toBe(false)
  })

  it('are unknown in another version', () => {
    expect(isKnown({ ...chunk, v: 2 as 1 })).toBe(false)
    expect(isKnown({})).toBe(false)
  })
})

describe('the data of a job', () => {
  it('is a chunk, without fields that a chunk does not have', () => {
    const chunk = encodeChunk(3, Buffer.from(rows(0, 3)))
    expect(readJobData(JSON.stringify({ ...chunk, more: 1 }))).toEqual({
      kind: 'chunk',
      chunk: { v: 1, rows: chunk.rows, bytes: chunk.bytes, frame: chunk.frame },
    })
  })

  it('is a chunk of an unknown format, whatever else it has', () => {
    expect(readJobData('{"v":2}')).toEqual({ kind: 'chunk of an unknown format' })
  })

  it.each(['', '{"v":', 'null', '5', '"text"', '[]', '{}', '{"v":"1"}', '{"v":1,"rows":1,"bytes":2}'])(
    'is damaged: %j',
    (text) => {
      expect(readJobData(text)).toEqual({ kind: 'damaged' })
    },
  )
})

describe('the trace of a chunk', () => {
  const text = Buffer.from(rows(0, 1))
  const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const chunk = encodeChunk(1, text, trace)

  it('reaches the worker', () => {
    expect(traceOf(chunk)).toBe(trace)
  })

  it.each([5, null, {}, '', 'short', trace.repeat(1_000)])('is ignored if it is %j', (invalid) => {
    expect(traceOf({ ...chunk, trace: invalid })).toBeUndefined()
  })
})
