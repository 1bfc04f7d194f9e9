import { encodeChunk } from '@sluice/schema'
import { beforeEach, describe, expect, it } from 'vitest'
import { QueueUnavailableError } from '../../src/chunks/chunk-queue.ts'
import { ShardedQueue } from '../../src/chunks/sharded-queue.ts'
import { FakeQueue } from '../support/fake-queue.ts'

const chunk = encodeChunk(1, Buffer.from('row\n'))
let queues: FakeQueue[]
let sharded: ShardedQueue
let nowMs: number

beforeEach(() => {
  queues = [0, 1, 2].map(() => new FakeQueue({ holding: true }))
  nowMs = 0
  sharded = new ShardedQueue(queues, () => nowMs)
})

const add = (id: string): Promise<string> =>
  sharded.add(id, chunk, 1_000).then(
    () => 'added',
    (error: Error) => error.name,
  )
const idsOf = (queue: FakeQueue | undefined): string[] => queue?.adds.map(({ chunkId }) => chunkId) ?? []
const ids = (): string[][] => queues.map(idsOf)
const confirmAll = (): void => queues.flatMap(({ adds }) => adds).forEach(({ confirm }) => confirm())

describe('chunks go', () => {
  it('to each shard in turn', async () => {
    for (const queue of queues) queue.holding = false
    for (const id of ['a', 'b', 'c', 'd', 'e']) await add(id)
    expect(ids()).toEqual([['a', 'd'], ['b', 'e'], ['c']])
  })

  it('past a shard that takes long, and so to the others alone', async () => {
    for (const queue of queues.slice(1)) queue.holding = false
    const slow = add('slow')
    for (const id of ['a', 'b', 'c']) await add(id)
    expect(ids()).toEqual([['slow'], ['a', 'c'], ['b']])
    confirmAll()
    expect(await slow).toBe('added')
  })

  it('past a shard that failed for five seconds, then to it again', async () => {
    for (const queue of queues.slice(1)) queue.holding = false
    const failing = add('failing')
    queues[0]?.adds[0]?.fail(new QueueUnavailableError('no answer'))
    expect(await failing).toBe('QueueUnavailableError')
    for (const id of ['a', 'b', 'c', 'd']) await add(id)
    expect(idsOf(queues[0])).toEqual(['failing'])
    nowMs += 5_001
    for (const queue of queues) queue.holding = false
    for (const id of ['e', 'f', 'g']) await add(id)
    expect(idsOf(queues[0])).toHaveLength(2)
  })

  it('to a shard that failed if all have', async () => {
    const failing = ['a', 'b', 'c'].map(add)
    for (const { adds } of queues) adds[0]?.fail(new QueueUnavailableError('no answer'))
    await Promise.all(failing)
    for (const queue of queues) queue.holding = false
    expect(await add('d')).toBe('added')
  })
})
