import { QueueUnavailableError } from '@sluice/queue'
import { ownedRows } from '@sluice/row-scanner'
import { namedRows } from '@sluice/rows/testing'
import { randomUUID } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { chunkLimits, ChunkWriter, type RecordedWrite } from '../../src/chunks/chunk-writer.ts'
import { FakeQueue, type PendingAdd } from '../support/fake-queue.ts'

let queue: FakeQueue
let writer: ChunkWriter

beforeEach(() => {
  queue = new FakeQueue({ holding: true })
  writer = writerOf([queue])
})

const records = { windowMs: 60_000, perProjectMax: 1_000 }
const writerOf = (queues: readonly FakeQueue[]): ChunkWriter =>
  new ChunkWriter({ queues, makeId: randomUUID, records, monotonicMs: () => performance.now() })

const writeOf = (name: string, shard = 0): RecordedWrite => ({
  shard,
  name,
  quota: 'quota',
  record: randomUUID(),
  rows: ownedRows(1, namedRows(name)),
})
const nthAdd = (index: number): Promise<PendingAdd> => vi.waitUntil(() => queue.adds[index], { interval: 1 })
/** The result of a write: `new`, `known`, or the name of the error. */
const resultOf = (write: RecordedWrite): Promise<string> =>
  writer.writeOnce(write).then(
    (record) => (record === write.record ? 'new' : 'known'),
    (error: Error) => error.name,
  )

describe('writes', () => {
  it('to one shard do not wait for another shard', async () => {
    const other = new FakeQueue({ holding: false })
    writer = writerOf([queue, other])
    const held = resultOf(writeOf('a'))
    expect(await resultOf(writeOf('b', 1))).toBe('new')
    expect(other.names).toEqual(['b'])
    ;(await nthAdd(0)).confirm()
    expect(await held).toBe('new')
    expect(queue.names).toEqual(['a'])
  })

  it('of a record that is in flight wait for it, whether it is gathered or being committed', async () => {
    const results = [resultOf(writeOf('a')), resultOf(writeOf('a'))]
    const first = await nthAdd(0)
    results.push(resultOf(writeOf('a')))
    await turn()
    first.confirm()
    expect(await Promise.all(results)).toEqual(['new', 'known', 'known'])
    expect(queue.names).toEqual(['a'])
  })

  it('whose records exist already are left out, and the others are committed without them', async () => {
    queue.holding = false
    expect(await resultOf(writeOf('b'))).toBe('new')
    const results = await Promise.all(['a', 'b', 'c'].map((name) => resultOf(writeOf(name))))
    expect(results).toEqual(['new', 'known', 'new'])
    expect(queue.adds.map(({ names }) => names)).toEqual([['b'], ['a', 'c']])
  })

  it('that are committed again are not joined by others, whose records may exist as well', async () => {
    queue.holding = false
    queue.records.set('b', 'a record')
    const first = resultOf(writeOf('a'))
    expect(await resultOf(writeOf('b'))).toBe('known')
    expect(await Promise.all([first, resultOf(writeOf('c'))])).toEqual(['new', 'new'])
    expect(queue.adds.map(({ names }) => names)).toEqual([['a'], ['c']])
  })

  it('have a different chunk id in each attempt, and the same deadline', async () => {
    queue.holding = false
    const added = vi.spyOn(queue, 'add')
    await writer.writeOnce(writeOf('b'))
    await Promise.all(['a', 'b'].map((name) => writer.writeOnce(writeOf(name))))
    expect(added).toHaveBeenCalledTimes(3)
    expect(new Set(added.mock.calls.map(([chunkId]) => chunkId)).size).toBe(3)
    const [, first, second] = added.mock.calls.map(([, , deadlineMs]) => deadlineMs)
    expect(second).toBe(first)
  })

  it('give each shard an equal share of a quota', async () => {
    queue.holding = false
    writer = writerOf([queue, queue, queue])
    const added = vi.spyOn(queue, 'add')
    await writer.writeOnce(writeOf('a'))
    expect(added.mock.calls[0]?.[3]).toMatchObject({ recordLimits: { windowMs: 60_000, recordsMax: 333 } })
  })
})

it('a commit that fails rejects its writes and those that wait for their records, and no others', async () => {
  const lost = [resultOf(writeOf('a')), resultOf(writeOf('a'))]
  const first = await nthAdd(0)
  const kept = resultOf(writeOf('b'))
  first.fail(new QueueUnavailableError('no answer'))
  expect(await Promise.all(lost)).toEqual(['QueueUnavailableError', 'QueueUnavailableError'])
  const again = resultOf(writeOf('a'))
  ;(await nthAdd(1)).confirm()
  ;(await nthAdd(2)).confirm()
  expect(await Promise.all([kept, again])).toEqual(['new', 'new'])
})

it('a commit has at most recordsMax records', async () => {
  queue.holding = false
  const count = chunkLimits.recordsMax + 1
  await Promise.all(Array.from({ length: count }, (_, i) => writer.writeOnce(writeOf(`${i}`))))
  expect(queue.adds.map(({ chunk }) => chunk.rows)).toEqual([count - 1, 1])
})
