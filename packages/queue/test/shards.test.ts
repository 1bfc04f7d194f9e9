import { beforeEach, describe, expect, it } from 'vitest'
import { encodeChunk } from '../src/chunk.ts'
import { QueueUnavailableError } from '../src/recorded-add.ts'
import { ShardedQueue } from '../src/shards.ts'

const chunk = encodeChunk(1, Buffer.from('row\n'))

/** A queue in memory. Its adds wait for the test, or are acknowledged at once. */
class FakeQueue {
  readonly ids: string[] = []
  readonly pending: PromiseWithResolvers<void>[] = []
  confirmsAtOnce = false

  add(chunkId: string): Promise<void> {
    const add = Promise.withResolvers<void>()
    this.ids.push(chunkId)
    this.pending.push(add)
    if (this.confirmsAtOnce) add.resolve()
    return add.promise
  }
}

let queues: FakeQueue[]
let sharded: ShardedQueue
let nowMs: number

beforeEach(() => {
  queues = [0, 1, 2].map(() => new FakeQueue())
  nowMs = 0
  sharded = new ShardedQueue(queues, () => nowMs)
})

const add = (id: string): Promise<string> =>
  sharded.add(id, chunk, 1_000).then(
    () => 'added',
    (error: Error) => error.name,
  )
const ids = (): string[][] => queues.map((queue) => queue.ids)
const confirmAllAtOnce = (some: readonly FakeQueue[]): void => {
  for (const queue of some) queue.confirmsAtOnce = true
}
const addAll = async (some: string): Promise<void> => {
  for (const id of some) await add(id)
}

describe('chunks are added', () => {
  it('to each shard in turn, and to the others while one is slow', async () => {
    confirmAllAtOnce(queues)
    await addAll('abcde')
    expect(ids()).toEqual([['a', 'd'], ['b', 'e'], ['c']])
    const slow = queues[2]
    if (slow !== undefined) slow.confirmsAtOnce = false
    const pending = add('slow')
    await addAll('fgh')
    expect(ids()).toEqual([
      ['a', 'd', 'f', 'h'],
      ['b', 'e', 'g'],
      ['c', 'slow'],
    ])
    slow?.pending[1]?.resolve()
    expect(await pending).toBe('added')
  })

  it('to the other shards for five seconds after one failed, and then to that one again', async () => {
    confirmAllAtOnce(queues.slice(1))
    const failing = add('failing')
    fail(queues[0])
    expect(await failing).toBe('QueueUnavailableError')
    await addAll('abcd')
    expect(queues[0]?.ids).toEqual(['failing'])
    nowMs += 5_001
    confirmAllAtOnce(queues)
    await addAll('efg')
    expect(queues[0]?.ids).toHaveLength(2)
  })

  it('to a shard that failed if all have failed', async () => {
    const failing = ['a', 'b', 'c'].map(add)
    for (const queue of queues) fail(queue)
    await Promise.all(failing)
    confirmAllAtOnce(queues)
    expect(await add('d')).toBe('added')
  })
})

function fail(queue: FakeQueue | undefined): void {
  queue?.pending[0]?.reject(new QueueUnavailableError('no answer'))
}
