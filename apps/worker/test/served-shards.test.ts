import { shardNames, type QueueNames } from '@sluice/queue'
import type { Logger } from '@sluice/runtime'
import { beforeEach, expect, it, vi } from 'vitest'
import { ServedShards } from '../src/served-shards.ts'
import { ShardProgress } from '../src/shard-progress.ts'

let started: number[]
let stopped: number[]
let logged: [level: string, fields: unknown, message: string][]
/** What Redis knows. */
let names: readonly QueueNames[]
let empty: Set<number>
let refresh: () => Promise<void>
/** Ends the wait before the next refresh. */
let wake: () => void

beforeEach(() => {
  ;[started, stopped, logged] = [[], [], []]
  names = shardNames('test', 1)
  empty = new Set()
  refresh = () => Promise.resolve()
  wake = () => undefined
})

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Lets the time until the next refresh pass. */
async function nextRefresh(): Promise<void> {
  wake()
  await settled()
}

const log = (level: string) => (fields: unknown, message: string) => logged.push([level, fields, message])

async function serve(): Promise<ServedShards> {
  const served = new ServedShards({
    shards: {
      get names() {
        return names
      },
      refresh: () => refresh(),
      isEmpty: ({ shard }) => Promise.resolve(empty.has(shard)),
    },
    start: ({ shard }) => {
      started.push(shard)
      const progress = new ShardProgress({ nowMs: () => 0 }, () => 1)
      return { heldChunks: 1, progress, stop: () => Promise.resolve(void stopped.push(shard)) }
    },
    clock: {
      sleep: (_ms, signal) =>
        new Promise((resolve) => {
          wake = resolve
          signal?.addEventListener('abort', () => resolve())
        }),
    },
    logger: { info: log('info'), warn: log('warn') } as unknown as Logger,
  })
  served.start()
  await settled()
  return served
}

it('serves the shards of the setting at once, although Redis does not answer', async () => {
  names = shardNames('test', 2)
  refresh = () => new Promise(() => undefined)
  const served = await serve()
  expect(started).toEqual([0, 1])
  await served.stop()
  expect(stopped).toEqual([0, 1])
})

it('serves the shards of the record at the start, and those that are added later', async () => {
  refresh = () => Promise.resolve(void (names = shardNames('test', 3)))
  const served = await serve()
  expect(started).toEqual([0, 1, 2])
  expect(served.heldChunks).toBe(3)
  expect(served.served.map((each) => each.names.shard)).toEqual([0, 1, 2])
  await nextRefresh()
  expect(started).toEqual([0, 1, 2])
  refresh = () => Promise.resolve(void (names = shardNames('test', 4)))
  await nextRefresh()
  expect(started).toEqual([0, 1, 2, 3])
  await served.stop()
  expect(stopped).toEqual([0, 1, 2, 3])
})

it('logs once that a retired shard is served, and once that it is empty', async () => {
  refresh = () => Promise.resolve(void (names = shardNames('test', 3)))
  empty.add(2)
  const served = await serve()
  await nextRefresh()
  empty.add(1)
  await nextRefresh()
  await nextRefresh()
  expect(logged).toEqual([
    ['info', { shard: 1 }, 'serving a shard above QUEUE_SHARDS'],
    ['info', { shard: 2 }, 'serving a shard above QUEUE_SHARDS'],
    ['info', { shard: 2 }, 'a shard above QUEUE_SHARDS is empty'],
    ['info', { shard: 1 }, 'a shard above QUEUE_SHARDS is empty'],
  ])
  await served.stop()
})

it('continues after an error of Redis', async () => {
  refresh = () => Promise.reject(new Error('NOPERM'))
  const served = await serve()
  expect(logged).toEqual([['warn', { err: expect.any(Error) }, 'retired shards not read']])
  refresh = () => Promise.resolve(void (names = shardNames('test', 2)))
  await nextRefresh()
  expect(started).toEqual([0, 1])
  await served.stop()
})

it('starts no shard after it was stopped', async () => {
  const answer = Promise.withResolvers<void>()
  refresh = async () => {
    await answer.promise
    names = shardNames('test', 2)
  }
  const served = await serve()
  await served.stop()
  answer.resolve()
  await settled()
  expect(started).toEqual([0])
  const refreshes = vi.fn<() => Promise<void>>(refresh)
  refresh = refreshes
  await nextRefresh()
  expect(refreshes).not.toHaveBeenCalled()
})
