import { connectRedis, createLogger, type RedisConnection } from '@sluice/runtime'
import { type Chunk, encodeChunk, redisNames, type RedisNames } from '@sluice/schema'
import { Queue } from 'bullmq'
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { ChunkQueue, QueueUnavailableError } from '../../src/chunks/chunk-queue.ts'
import { chunkLimits } from '../../src/chunks/chunk-writer.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'

/** What the contract gives a client to wait. */
const ANSWER_WITHIN_MS = 2_000

const chunk = encodeChunk(2, Buffer.from('{"a":1}\n{"b":2}\n'))
let names: RedisNames
let proxy: TcpProxy
let redis: RedisConnection
let queue: ChunkQueue
/** The same queue, seen on a way that is never cut. */
let direct: RedisConnection
let seen: Queue<Chunk>

beforeEach(async () => {
  const { redisUrl } = inject('services')
  names = redisNames(`test-chunk-queue-${randomUUID()}`)
  proxy = await TcpProxy.to(redisUrl)
  redis = connectRedis(proxy.urlFor(redisUrl), {
    failFast: true,
    commandTimeoutMs: chunkLimits.addDeadlineMs,
  })
  redis.on('error', () => undefined)
  queue = new ChunkQueue(redis, names, createLogger('test', 'silent'))
  direct = connectRedis(redisUrl, { failFast: false })
  seen = new Queue<Chunk>(names.queue, { connection: direct, prefix: names.queuePrefix })
  await connected()
})

afterEach(async () => {
  proxy.thaw()
  await seen.obliterate({ force: true })
  await seen.close()
  await queue.close()
  redis.disconnect()
  direct.disconnect()
  await proxy.down()
})

const add = (chunkId: string): Promise<void> =>
  queue.add(chunkId, chunk, performance.now() + chunkLimits.addDeadlineMs)

/** How an add ended: `added`, `unavailable` within the time to answer, or what else it was. */
async function fate(chunkId: string): Promise<string> {
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

/** The ids of the jobs that wait, in order. */
async function waitingIds(): Promise<string[]> {
  const jobs = await seen.getWaiting()
  return jobs.map(({ id }) => id ?? '').toSorted((a, b) => a.localeCompare(b))
}

const connected = async (): Promise<void> => {
  await vi.waitUntil(() => queue.isConnected, { timeout: 10_000 })
}

describe('an add', () => {
  it('is a job that waits, with the chunk as it was given', async () => {
    await add('one')
    const job = await seen.getJob('one')
    expect(job?.name).toBe('chunk')
    expect(job?.data).toEqual(chunk)
    expect(await seen.getWaitingCount()).toBe(1)
  })

  it('is one job however often it is done with the same id', async () => {
    await Promise.all([add('one'), add('one'), add('one')])
    await add('one')
    expect(await seen.getWaitingCount()).toBe(1)
  })

  it('is a job of its own for each id', async () => {
    await Promise.all(Array.from({ length: 20 }, (_, i) => add(`chunk-${i}`)))
    expect(await seen.getWaitingCount()).toBe(20)
  })

  it('keeps no more events than it must', async () => {
    for (let i = 0; i < 300; i += 1) await add(`chunk-${i}`)
    expect(await direct.xlen(`${names.queuePrefix}:${names.queue}:events`)).toBeLessThan(200)
  })
})

describe('a connection that is cut between the add and its answer', () => {
  it('makes the add be tried again, and gives one job', async () => {
    await add('warm-up')
    proxy.cutAfter('the-chunk')
    await add('the-chunk')
    expect(proxy.cuts).toBe(1)
    expect(await waitingIds()).toEqual(['the-chunk', 'warm-up'])
  })

  it('does so on the first add, too', async () => {
    proxy.cutAfter('the-chunk')
    await add('the-chunk')
    expect(proxy.cuts).toBe(1)
    expect(await seen.getWaitingCount()).toBe(1)
  })

  it('does so for each of many adds under way', async () => {
    await add('warm-up')
    proxy.cutAfter('chunk-1')
    await Promise.all(Array.from({ length: 3 }, (_, i) => add(`chunk-${i}`)))
    expect(proxy.cuts).toBe(1)
    expect(await seen.getWaitingCount()).toBe(4)
  })
})

describe('a Redis that is down', () => {
  it('is told within the time that the contract gives', async () => {
    await proxy.down()
    expect(await fate('one')).toBe('unavailable')
    expect(await fate('two')).toBe('unavailable')
    expect(await seen.getWaitingCount()).toBe(0)
  })

  it('is found again by itself', async () => {
    await add('before')
    await proxy.down()
    expect(await fate('lost')).toBe('unavailable')
    await proxy.up()
    await connected()
    await add('afterwards')
    expect(await waitingIds()).toEqual(['afterwards', 'before'])
  })

  it('is waited for when it comes back in time', async () => {
    await add('before')
    await proxy.down()
    const pending = fate('patient')
    await new Promise((resolve) => setTimeout(resolve, 100))
    await proxy.up()
    expect(await pending).toBe('added')
    expect(await seen.getJob('patient')).toBeDefined()
  })

  it('at the start is found when it comes', async () => {
    await proxy.down()
    const { redisUrl } = inject('services')
    const cold = connectRedis(proxy.urlFor(redisUrl), { failFast: true, commandTimeoutMs: 1_800 })
    cold.on('error', () => undefined)
    const late = new ChunkQueue(cold, names, createLogger('test', 'silent'))
    await expect(late.add('one', chunk, performance.now() + 200)).rejects.toThrow(QueueUnavailableError)
    await proxy.up()
    await expect.poll(() => late.isConnected, { timeout: 10_000 }).toBe(true)
    await late.add('two', chunk, performance.now() + 1_800)
    expect(await seen.getJob('two')).toBeDefined()
    await late.close()
    cold.disconnect()
  })
})

describe('a Redis that is frozen', () => {
  it('is told within the time that the contract gives, again and again', async () => {
    await add('before')
    proxy.freeze()
    expect(await fate('one')).toBe('unavailable')
    expect(await fate('two')).toBe('unavailable')
  })

  it('is told so on the first add, too', async () => {
    proxy.freeze()
    expect(await fate('one')).toBe('unavailable')
  })

  it('is found again by itself', async () => {
    await add('before')
    proxy.freeze()
    expect(await fate('one')).toBe('unavailable')
    proxy.thaw()
    await connected()
    await add('afterwards')
    expect(await waitingIds()).toContain('afterwards')
  })

  it('does not keep an add whose deadline has passed from failing at once', async () => {
    await add('before')
    proxy.freeze()
    const startedMs = performance.now()
    await expect(queue.add('late', chunk, performance.now() - 1)).rejects.toThrow(QueueUnavailableError)
    expect(performance.now() - startedMs).toBeLessThan(200)
  })
})

describe('a Redis that refuses', () => {
  it('a write is told as unavailable in time, and not as written', async () => {
    const { redisUrl } = inject('services')
    const user = `test-${randomUUID()}`
    const rights = ['on', '>secret', '~*', '&*', '+@all', '-eval', '-evalsha']
    await direct.call('ACL', 'SETUSER', user, ...rights)
    const url = new URL(redisUrl)
    url.username = user
    url.password = 'secret'
    const limited = connectRedis(url.href, { failFast: true, commandTimeoutMs: 1_800 })
    const refused = new ChunkQueue(limited, names, createLogger('test', 'silent'))
    await vi.waitUntil(() => refused.isConnected)
    const startedMs = performance.now()
    await expect(refused.add('one', chunk, startedMs + 500)).rejects.toThrow(QueueUnavailableError)
    expect(performance.now() - startedMs).toBeLessThan(ANSWER_WITHIN_MS)
    expect(await waitingIds()).toEqual([])
    await refused.close()
    limited.disconnect()
    await direct.call('ACL', 'DELUSER', user)
  })
})
