import { type QueueNames, shardNames } from '@sluice/queue'
import type { Logger } from '@sluice/runtime'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { workerLimits } from '../src/limits.ts'
import { fetchLimits } from '../src/shard.ts'
import { REFRESH_INTERVAL_MS, ServedShards } from '../src/shards.ts'
import { insertErrors } from './support/chunks.ts'
import { TestClock } from './support/test-clock.ts'
import { config, WorkerFixture } from './support/worker-fixture.ts'

describe('a shard', () => {
  let worker: WorkerFixture

  beforeEach(() => {
    worker = new WorkerFixture()
  })

  /** Adds chunks, and lets the worker fetch them. */
  async function fetch(...ids: readonly string[]): Promise<void> {
    for (const id of ids) worker.add(id)
    await worker.clock.pass(fetchLimits.idleIntervalMs)
  }

  it('collects chunks as the settings say', async () => {
    await fetch('a', 'b', 'c', 'd', 'e')
    await worker.clock.pass(config.BATCH_WAIT_MS - 1)
    expect(worker.only('claim')).toEqual(['claim a b c d'])
    await worker.clock.pass(1)
    expect(worker.only('claim')).toEqual(['claim a b c d', 'claim e'])
  })

  it('trusts that a batch belongs to it for half of the duration of a lock', async () => {
    worker.insert = () => Promise.reject(insertErrors.transient)
    await fetch('a')
    await worker.clock.pass(config.BATCH_WAIT_MS + config.LOCK_DURATION_MS / 2)
    expect(worker.only('read')).toEqual([])
    await worker.clock.pass(workerLimits.retry.maxMs)
    expect(worker.only('read')).toHaveLength(1)
  })

  it('repairs one batch at a time', async () => {
    worker.owners.set('a', 'B').set('b', 'C')
    const inserted = Promise.withResolvers<void>()
    worker.insert = () => inserted.promise
    await fetch('a', 'b')
    await worker.clock.pass(1_000)
    expect(worker.only('insert')).toEqual(['insert B'])
    inserted.resolve()
    await worker.clock.pass(0)
    expect(worker.only('finish')).toEqual(['finish B', 'finish C'])
  })

  it('closes the consumer after everything is delivered', async () => {
    await fetch('a')
    expect(worker.heldChunks).toBe(1)
    await worker.clock.settle(Promise.all(worker.shards.map((shard) => shard.stop())))
    expect(worker.calls.map((call) => call.split(' ')[0])).toEqual(['claim', 'insert', 'finish', 'close'])
  })
})

describe('the served shards', () => {
  let started: number[]
  let stopped: number[]
  let logged: [level: string, fields: unknown, message: string][]
  /** What Redis knows. */
  let names: readonly QueueNames[]
  let empty: Set<number>
  let refresh: () => Promise<void>
  let clock: TestClock

  beforeEach(() => {
    ;[started, stopped, logged] = [[], [], []]
    names = shardNames('test', 1)
    empty = new Set()
    refresh = () => Promise.resolve()
    clock = new TestClock()
  })

  const nextRefresh = (): Promise<void> => clock.pass(REFRESH_INTERVAL_MS)

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
        return { heldChunks: 1, loopedAtMs: shard, stop: () => Promise.resolve(void stopped.push(shard)) }
      },
      clock,
      logger: { info: log('info'), warn: log('warn') } as unknown as Logger,
    })
    served.start()
    await clock.pass(0)
    return served
  }

  it('serves the shards of the setting at once, although Redis does not reply', async () => {
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
    empty.add(1)
    const watched = served.watched.map(async ({ names: { shard }, loopedAtMs, askRedis }) => [
      shard,
      loopedAtMs,
      await askRedis(),
    ])
    expect(await Promise.all(watched)).toEqual([
      [0, 0, false],
      [1, 1, true],
      [2, 2, false],
    ])
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
    await clock.pass(0)
    expect(started).toEqual([0])
    const refreshes = vi.fn<() => Promise<void>>(refresh)
    refresh = refreshes
    await nextRefresh()
    expect(refreshes).not.toHaveBeenCalled()
  })
})
