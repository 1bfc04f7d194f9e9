import { packBlocks } from '@sluice/rows'
import { namedRows } from '@sluice/rows/testing'
import { beforeEach, describe, expect, it } from 'vitest'
import { encodeChunk } from '../src/chunk.ts'
import { QueueUnavailableError } from '../src/recorded-add.ts'
import { ShardedQueue } from '../src/sharded-queue.ts'

const chunk = encodeChunk(packBlocks(namedRows('row')))

/** A queue in memory. Its adds wait for the test, or are acknowledged at once. */
class FakeQueue {
  readonly ids: string[] = []
  readonly pending: PromiseWithResolvers<undefined>[] = []
  confirmsAtOnce = false

  add(chunkId: string): Promise<undefined> {
    const add = Promise.withResolvers<undefined>()
    this.ids.push(chunkId)
    this.pending.push(add)
    if (this.confirmsAtOnce) add.resolve(undefined)
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
  sharded.addTo(undefined, id, chunk, 1_000).then(
    () => 'added',
    (error: Error) => error.name,
  )
const ids = (): string[][] => queues.map((queue) => queue.ids)
const addAll = async (some: string): Promise<void> => {
  for (const id of some) await add(id)
}
const confirmAtOnce = (): void => {
  for (const queue of queues) queue.confirmsAtOnce = true
}
const failFirst = (queue: FakeQueue | undefined): void =>
  queue?.pending[0]?.reject(new QueueUnavailableError('no answer'))

describe('chunks are added', () => {
  it('to each shard in turn, and to the others while one is slow', async () => {
    const slow = add('slow')
    confirmAtOnce()
    await addAll('abcd')
    expect(ids()).toEqual([['slow'], ['a', 'c'], ['b', 'd']])
    queues[0]?.pending[0]?.resolve(undefined)
    expect(await slow).toBe('added')
    await addAll('efg')
    expect(ids()).toEqual([
      ['slow', 'e'],
      ['a', 'c', 'f'],
      ['b', 'd', 'g'],
    ])
  })

  it('to the other shards for five seconds after one failed, and then to that one again', async () => {
    const failing = add('failing')
    confirmAtOnce()
    failFirst(queues[0])
    expect(await failing).toBe('QueueUnavailableError')
    await addAll('abcd')
    expect(queues[0]?.ids).toEqual(['failing'])
    nowMs += 5_001
    await addAll('efg')
    expect(queues[0]?.ids).toHaveLength(2)
  })

  it('to a shard that failed if all have failed', async () => {
    const failing = ['a', 'b', 'c'].map(add)
    for (const queue of queues) failFirst(queue)
    await Promise.all(failing)
    confirmAtOnce()
    expect(await add('d')).toBe('added')
  })
})
