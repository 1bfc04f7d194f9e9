import { rowColumns } from '@sluice/rows'
import { zstdDecompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { columnsHash, decodeChunk, encodeChunk, isKnownFormat, readJobData } from '../src/chunk.ts'

const rows = (from: number, to: number): string =>
  Array.from({ length: to - from }, (_, i) => `{"n":${from + i},"message":"grüße 😀"}\n`).join('')

const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

/** What a worker gets from a job with this data. */
const received = (data: object) => {
  const read = readJobData(JSON.stringify(data))
  if (read.kind !== 'chunk') throw new Error(read.kind)
  return decodeChunk('its-id', read.chunk)
}

describe('a chunk', () => {
  const text = rows(0, 3)
  const chunk = encodeChunk(3, Buffer.from(text), trace)

  it('reaches the worker with its rows, their number and bytes in UTF-8, and its trace', () => {
    const { frame, ...others } = received({ ...chunk, more: 1 })
    expect(others).toEqual({ id: 'its-id', rows: 3, bytes: Buffer.byteLength(text), trace })
    expect(zstdDecompressSync(frame).toString()).toBe(text)
  })

  it('has a frame that can be concatenated with the frames of other chunks', () => {
    const texts = [rows(0, 100), rows(100, 250)]
    const frames = texts.map((its, i) => received(encodeChunk([100, 150][i] ?? 0, Buffer.from(its))).frame)
    expect(zstdDecompressSync(Buffer.concat(frames)).toString()).toBe(texts.join(''))
  })

  it.each([5, null, {}, '', 'short', trace.repeat(1_000)])('has no trace if it is %j', (invalid) => {
    expect(received({ ...chunk, trace: invalid }).trace).toBeUndefined()
  })
})

describe('the columns of a chunk', () => {
  const { columns, ...earlierChunk } = encodeChunk(1, Buffer.from(rows(0, 1)))
  const names: readonly string[] = rowColumns

  // If this test fails, a column was added, removed or moved. CONTRIBUTING.md says what happens to chunks that are in the queue. The hash
  // of earlier chunks, which have no `columns`, never changes.
  it('are the columns of the first version', () => {
    expect(rowColumns.join(' ')).toBe(
      'project_id received_at expires_on id timestamp level environment source service url pathname message stack metadata_text',
    )
    expect(columns).toBe('d6544c43')
    expect(received(earlierChunk).rows).toBe(1)
  })

  it.each([
    ['one more', [...names, 'region']],
    ['one less', names.slice(0, -1)],
    ['two exchanged', [...names.slice(0, -2), ...names.slice(-2).toReversed()]],
    ['another name', [...names.slice(0, -1), 'metadata']],
  ])('are unknown with %s', (_what, others) => {
    expect([isKnownFormat(1, columnsHash(names)), isKnownFormat(1, columnsHash(others))]).toEqual([
      true,
      false,
    ])
  })
})

it.each(['', '{"v":', 'null', '5', '"text"', '[]', '{}', '{"v":"1"}', '{"v":1,"rows":1,"bytes":2}'])(
  'the data of a job is damaged: %j',
  (text) => {
    expect(readJobData(text)).toEqual({ kind: 'damaged' })
    expect(readJobData('{"v":2}')).toEqual({ kind: 'chunk of an unknown format' })
  },
)
