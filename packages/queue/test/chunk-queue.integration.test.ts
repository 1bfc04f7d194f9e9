import { FaultProxy } from '@sluice/harness'
import { connectRedis, createLogger, type RedisConnection } from '@sluice/runtime'
import { Queue } from 'bullmq'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { type Chunk, encodeChunk } from '../src/chunk.ts'
import { ChunkQueue, QueueUnavailableError } from '../src/chunk-queue.ts'
import { queueNames, type QueueNames } from '../src/queue-names.ts'

/** The API gives an add this much time. */
const ADD_DEADLINE_MS = 1_800
/** The API must answer its client within this time. */
const ANSWER_WITHIN_MS = 2_000

const chunk = encodeChunk(2, Buffer.from('{"a":1}\n{"b":2}\n'))
let names: QueueNames
let proxy: FaultProxy
let redis: RedisConnection
let queue: ChunkQueue
/** The same Redis, without the proxy. */
let direct: RedisConnection
/** The same queue, without the proxy. */
let stored: Queue<Chunk>

beforeEach(async () => {
  const { redisUrl } = inject('services')
  names = queueNames(`test-chunk-queue-${randomUUID()}`)
  proxy = await FaultProxy.open(redisUrl)
  redis = connectRedis(proxy.url, { failFast: true, commandTimeoutMs: ADD_DEADLINE_MS })
  redis.on('error', () => undefined)
  queue = new ChunkQueue(redis, names, createLogger('test', 'silent'))
  direct = connectRedis(redisUrl, { failFast: false })
  stored = new Queue<Chunk>(names.queue, { connection: direct, prefix: names.queuePrefix })
  await connected()
})

afterEach(async () => {
  proxy.heal()
  await stored.obliterate({ force: true })
  await stored.close()
  await queue.close()
  redis.disconnect()
  direct.disconnect()
  await proxy.down()
})

const add = (chunkId: string): Promise<void> => queue.add(chunkId, chunk, performance.now() + ADD_DEADLINE_MS)

/** The result of an add: `added`, `unavailable` if that was reported in time for an answer, or a text for anything else. */
async function resultOfAdd(chunkId: string): Promise<string> {
  const startedMs = performance.now()
  try {
    await add(chunkId)
    return 'added'
  } catch (error) {
    const tookMs = performance.now() - startedMs
    if (!(error instanceof QueueUnavailableError)) return String(error)
    return tookMs < ANSWER_WITHIN_MS ? 'unavailable' : `unavailable after ${tookMs} ms`
  }
}

/** The ids of the waiting jobs, sorted. */
async function waitingIds(): Promise<string[]> {
  const jobs = await stored.getWaiting()
  return jobs.map(({ id }) => id ?? '').toSorted((a, b) => a.localeCompare(b))
}

const connected = async (): Promise<void> => {
  await vi.waitUntil(() => queue.isConnected, { timeout: 10_000 })
}

describe('an add', () => {
  it('makes a waiting job with the chunk as it was given', async () => {
    await add('one')
    const job = await stored.getJob('one')
    expect(job?.name).toBe('chunk')
    expect(job?.data).toEqual(chunk)
    expect(await stored.getWaitingCount()).toBe(1)
  })

  it('makes one job, however often it is repeated with the same id', async () => {
    await Promise.all([add('one'), add('one'), add('one')])
    await add('one')
    expect(await stored.getWaitingCount()).toBe(1)
  })

  it('makes a separate job for each id', async () => {
    await Promise.all(Array.from({ length: 20 }, (_, i) => add(`chunk-${i}`)))
    expect(await stored.getWaitingCount()).toBe(20)
  })

  it('keeps the stream of events short', async () => {
    for (let i = 0; i < 300; i += 1) await add(`chunk-${i}`)
    expect(await direct.xlen(`${names.queuePrefix}:${names.queue}:events`)).toBeLessThan(200)
  })
})

describe('a connection that is cut between the add and its answer', () => {
  it('causes a retry, and there is one job', async () => {
    await add('warm-up')
    proxy.cutAnswerTo('the-chunk')
    await add('the-chunk')
    expect(proxy.cuts).toBe(1)
    expect(await waitingIds()).toEqual(['the-chunk', 'warm-up'])
  })

  it('causes a retry of the first add, too', async () => {
    proxy.cutAnswerTo('the-chunk')
    await add('the-chunk')
    expect(proxy.cuts).toBe(1)
    expect(await stored.getWaitingCount()).toBe(1)
  })

  it('causes a retry of every add in flight', async () => {
    await add('warm-up')
    proxy.cutAnswerTo('chunk-1')
    await Promise.all(Array.from({ length: 3 }, (_, i) => add(`chunk-${i}`)))
    expect(proxy.cuts).toBe(1)
    expect(await stored.getWaitingCount()).toBe(4)
  })
})

describe('a Redis that is down', () => {
  it('is reported as unavailable in time for an answer', async () => {
    await proxy.down()
    expect(await resultOfAdd('one')).toBe('unavailable')
    expect(await resultOfAdd('two')).toBe('unavailable')
    expect(await stored.getWaitingCount()).toBe(0)
  })

  it('is used again when it recovers', async () => {
    await add('before')
    await proxy.down()
    expect(await resultOfAdd('lost')).toBe('unavailable')
    await proxy.up()
    await connected()
    await add('afterwards')
    expect(await waitingIds()).toEqual(['afterwards', 'before'])
  })

  it('gets the add if it recovers before the deadline', async () => {
    await add('before')
    await proxy.down()
    const pending = resultOfAdd('patient')
    await sleep(100)
    await proxy.up()
    expect(await pending).toBe('added')
    expect(await stored.getJob('patient')).toBeDefined()
  })

  it('at the start is used when it becomes available', async () => {
    await proxy.down()
    const cold = connectRedis(proxy.url, { failFast: true, commandTimeoutMs: ADD_DEADLINE_MS })
    cold.on('error', () => undefined)
    const late = new ChunkQueue(cold, names, createLogger('test', 'silent'))
    await expect(late.add('one', chunk, performance.now() + 200)).rejects.toThrow(QueueUnavailableError)
    await proxy.up()
    await expect.poll(() => late.isConnected, { timeout: 10_000 }).toBe(true)
    await late.add('two', chunk, performance.now() + ADD_DEADLINE_MS)
    expect(await stored.getJob('two')).toBeDefined()
    await late.close()
    cold.disconnect()
  })
})

describe('a Redis that stalls', () => {
  it('is reported as unavailable in time for an answer, each time', async () => {
    await add('before')
    proxy.hold('both')
    expect(await resultOfAdd('one')).toBe('unavailable')
    expect(await resultOfAdd('two')).toBe('unavailable')
  })

  it('is reported for the first add, too', async () => {
    proxy.hold('both')
    expect(await resultOfAdd('one')).toBe('unavailable')
  })

  it('is used again when it recovers', async () => {
    await add('before')
    proxy.hold('both')
    expect(await resultOfAdd('one')).toBe('unavailable')
    proxy.resume()
    await connected()
    await add('afterwards')
    expect(await waitingIds()).toContain('afterwards')
  })

  it('does not delay the failure of an add whose deadline has passed', async () => {
    await add('before')
    proxy.hold('both')
    const startedMs = performance.now()
    await expect(queue.add('late', chunk, performance.now() - 1)).rejects.toThrow(QueueUnavailableError)
    expect(performance.now() - startedMs).toBeLessThan(200)
  })
})

describe('a Redis that rejects writes', () => {
  it('is reported as unavailable in time for an answer, and has no job', async () => {
    const { redisUrl } = inject('services')
    const user = `test-${randomUUID()}`
    const rights = ['on', '>secret', '~*', '&*', '+@all', '-eval', '-evalsha']
    await direct.call('ACL', 'SETUSER', user, ...rights)
    const url = new URL(redisUrl)
    url.username = user
    url.password = 'secret'
    const limited = connectRedis(url.href, { failFast: true, commandTimeoutMs: ADD_DEADLINE_MS })
    const rejecting = new ChunkQueue(limited, names, createLogger('test', 'silent'))
    await vi.waitUntil(() => rejecting.isConnected)
    const startedMs = performance.now()
    await expect(rejecting.add('one', chunk, startedMs + 500)).rejects.toThrow(QueueUnavailableError)
    expect(performance.now() - startedMs).toBeLessThan(ANSWER_WITHIN_MS)
    expect(await waitingIds()).toEqual([])
    await rejecting.close()
    limited.disconnect()
    await direct.call('ACL', 'DELUSER', user)
  })
})
