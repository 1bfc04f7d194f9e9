import { isOfBlocks, rowColumns, rowsOfFrame, packBlocks } from '@sluice/rows'
import { namedRows, namesIn } from '@sluice/rows/testing'
import { zstdDecompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { type NewChunk, columnsHash, encodeChunk, isKnownFormat, readJob } from '../src/chunk.ts'
import { textChunk, textChunkData } from './support/text-chunk.ts'

const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

/** What a worker gets from a job with this data. */
const received = (data: object, frame: Buffer | null = null) => {
  const read = readJob('its-id', JSON.stringify(data), frame)
  if (typeof read === 'string') throw new Error(read)
  return read
}

describe('a chunk', () => {
  const blocks = Buffer.concat([namedRows('grüße 😀', 'b'), namedRows('c')])
  const chunk = encodeChunk(packBlocks(blocks), trace)

  it('reaches the worker with its rows, their number and bytes, and its trace', () => {
    expect(chunk.v).toBe(2)
    const { frame: sent, ...data } = chunk
    const { frame, ...others } = received({ ...data, more: 1 }, sent)
    expect(others).toEqual({ id: 'its-id', rows: 3, bytes: blocks.length, trace })
    expect(isOfBlocks(frame)).toBe(true)
    expect(namesIn(frame)).toEqual(['grüße 😀', 'b', 'c'])
  })

  it.each([5, null, {}, '', 'short', trace.repeat(1_000)])('has no trace if it is %j', (invalid) => {
    expect(received({ ...chunk, trace: invalid }, chunk.frame).trace).toBeUndefined()
  })
})

describe('a chunk of version 1, which has rows of text', () => {
  const rows = ['grüße 😀\t1\n', 'b\t2\n']
  const chunk = textChunk(rows)

  it.each([
    ['the first version', chunk],
    ['later versions, which names its columns', { ...chunk, columns: columnsHash(rowColumns), trace }],
  ])('of %s reaches the worker', (_what, data: NewChunk) => {
    const { frame, ...others } = received(textChunkData(data))
    const bytes = Buffer.byteLength(rows.join(''))
    expect(others).toEqual({ id: 'its-id', rows: 2, bytes, trace: data.trace })
    expect(isOfBlocks(frame)).toBe(false)
    expect(rowsOfFrame(frame)).toEqual(rows)
  })

  it('has a frame that can be concatenated with the frames of other chunks', () => {
    const frames = [chunk, textChunk(['c\n'])].map((each) => received(textChunkData(each)).frame)
    expect(zstdDecompressSync(Buffer.concat(frames)).toString()).toBe([...rows, 'c\n'].join(''))
  })
})

describe('the columns of a chunk', () => {
  const { columns } = encodeChunk(packBlocks(namedRows('a')))
  const names: readonly string[] = rowColumns

  // If this test fails, a column was added, removed or moved. CONTRIBUTING.md says what happens to chunks that are in the queue. The hash
  // of earlier chunks, which have no `columns`, never changes.
  it('are the columns of the first version', () => {
    expect(rowColumns.join(' ')).toBe(
      'project_id received_at expires_on id timestamp level environment source service url pathname message stack metadata_text',
    )
    expect(columns).toBe('d6544c43')
    expect(received(textChunkData(textChunk(['a\n']))).rows).toBe(1)
  })

  it.each([
    ['one more', [...names, 'region']],
    ['one less', names.slice(0, -1)],
    ['two exchanged', [...names.slice(0, -2), ...names.slice(-2).toReversed()]],
    ['another name', [...names.slice(0, -1), 'metadata']],
  ])('are unknown with %s', (_what, others) => {
    for (const v of [1, 2]) {
      const known = [names, others].map((columnsOfIt) => isKnownFormat(v, columnsHash(columnsOfIt)))
      expect(known).toEqual([true, false])
    }
  })
})

it.each([0, 3, 1.5, -1])('a chunk of version %j has an unknown format', (v) => {
  expect(readJob('its-id', JSON.stringify({ v, rows: 1, bytes: 2 }), Buffer.alloc(1))).toBe(
    'of an unknown format',
  )
})

it.each([
  '',
  '{"v":',
  'null',
  '5',
  '"text"',
  '[]',
  '{}',
  '{"v":"1"}',
  '{"v":1,"rows":1,"bytes":2}',
  '{"v":2,"rows":1,"bytes":2}',
  '{"v":2,"rows":1,"bytes":2,"frame":"KLUv"}',
])('the data of a job is damaged: %j', (text) => {
  expect(readJob('its-id', text, null)).toBe('damaged')
  expect(readJob('its-id', '{"v":3}', null)).toBe('of an unknown format')
})
