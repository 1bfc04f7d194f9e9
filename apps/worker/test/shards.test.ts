import { type QueueNames, shardNames } from '@sluice/queue'
import type { Logger } from '@sluice/runtime'
import { beforeEach, describe, expect, it } from 'vitest'
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

  /** Adds a chunk, and lets the worker fetch it. */
  async function fetch(id: string): Promise<void> {
    worker.add(id)
    await worker.clock.pass(fetchLimits.idleIntervalMs)
  }

  it('trusts that a batch belongs to it for half of the duration of a lock', async () => {
    worker.insert = () => Promise.reject(insertErrors.transient)
    await fetch('a')
    await worker.clock.pass(config.BATCH_WAIT_MS + config.LOCK_DURATION_MS / 2)
    expect(worker.only('read')).toEqual([])
    await worker.clock.pass(workerLimits.retry.maxMs)
    expect(worker.only('read')).not.toEqual([])
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
  let logged: [fields: unknown, message: string][]
  /** What Redis knows. */
  let names: readonly QueueNames[]
  let refresh: () => Promise<void>
  let clock: TestClock

  beforeEach(() => {
    ;[started, stopped, logged] = [[], [], []]
    names = shardNames('test', 1)
    refresh = () => Promise.resolve()
    clock = new TestClock()
  })

  const nextRefresh = (): Promise<void> => clock.pass(REFRESH_INTERVAL_MS)
  const learn = (count: number): void => {
    refresh = () => Promise.resolve(void (names = shardNames('test', count)))
  }
  const log = (fields: unknown, message: string) => logged.push([fields, message])

  async function serve(): Promise<ServedShards> {
    const served = new ServedShards({
      shards: {
        get names() {
          return names
        },
        refresh: () => refresh(),
      },
      start: ({ shard }) => {
        started.push(shard)
        return { heldChunks: 1, stop: () => Promise.resolve(void stopped.push(shard)) }
      },
      clock,
      logger: { info: log, warn: log } as unknown as Logger,
    })
    served.start()
    await clock.pass(0)
    return served
  }

  it('are those of the setting at once, although Redis does not reply, and none after the stop', async () => {
    names = shardNames('test', 2)
    const answer = Promise.withResolvers<void>()
    refresh = async () => {
      await answer.promise
      names = shardNames('test', 3)
    }
    const served = await serve()
    expect(started).toEqual([0, 1])
    await served.stop()
    expect(stopped).toEqual([0, 1])
    answer.resolve()
    await nextRefresh()
    expect(started).toEqual([0, 1])
    refresh = () => Promise.reject(new Error('not stopped'))
    await nextRefresh()
    expect(logged).toEqual([])
  })

  it('are those of the record at the start, and those that are added later', async () => {
    learn(3)
    const served = await serve()
    expect(started).toEqual([0, 1, 2])
    expect(served.heldChunks).toBe(3)
    expect(served.names.map(({ shard }) => shard)).toEqual([0, 1, 2])
    learn(4)
    await nextRefresh()
    expect(started).toEqual([0, 1, 2, 3])
    await served.stop()
    expect(stopped).toEqual([0, 1, 2, 3])
  })

  it('are logged once when a retired one is served, also after an error of Redis', async () => {
    refresh = () => Promise.reject(new Error('NOPERM'))
    await serve()
    learn(2)
    await nextRefresh()
    await nextRefresh()
    expect(logged).toEqual([
      [{ err: expect.any(Error) }, 'retired shards not read'],
      [{ shard: 1 }, 'serving a shard above QUEUE_SHARDS'],
    ])
  })
})
