import { FaultProxy } from '@sluice/harness'
import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { Job } from 'bullmq'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { type ChunkConsumerOptions, RequeueError } from '../src/chunk-consumer.ts'
import { FetchMonitor } from '../src/fetch-monitor.ts'
import { chunkOf, openConsumerFixture, startTestRedis, WAIT_MS } from './support/consumer-fixture.ts'

/** How long a test watches for something that must not happen. */
const WATCHED_MS = 1_500

let server: Awaited<ReturnType<typeof startTestRedis>>

beforeAll(async () => {
  server = await startTestRedis()
})

afterAll(() => server.stop())

type Deliver = ChunkConsumerOptions['deliver']

const newMonitor = (): FetchMonitor => new FetchMonitor(() => performance.now())

/** A connection to the same Redis through a proxy. */
async function openProxied(): Promise<{ readonly proxy: FaultProxy; readonly proxied: RedisConnection }> {
  const proxy = await FaultProxy.open(server.url)
  onTestFinished(() => proxy.down())
  const proxied = connectRedis(proxy.url, { failFast: false })
  proxied.on('error', () => undefined)
  onTestFinished(() => proxied.disconnect())
  return { proxy, proxied }
}

describe('a chunk', () => {
  it('is delivered and completed', async () => {
    const { queue, delivered, completed, add, startConsumer } = openConsumerFixture(server.url)
    await add('a-chunk')
    startConsumer()
    await vi.waitFor(() => expect(completed).toEqual(['a-chunk']), WAIT_MS)
    expect(delivered).toEqual(['a-chunk'])
    expect(await queue.getJob('a-chunk')).toBeUndefined()
  })

  it('is delivered once if it is in hand for longer than its lock lasts', async () => {
    const { completed, warnings, add, startConsumer } = openConsumerFixture(server.url)
    await add('a-chunk')
    const deliver = vi.fn<Deliver>(() => sleep(3_000))
    startConsumer({ deliver, lockDurationMs: 1_000 })
    // It would be found stalled, and delivered to the other consumer.
    startConsumer({ deliver, lockDurationMs: 1_000 })
    await vi.waitFor(() => expect(completed).toEqual(['a-chunk']), WAIT_MS)
    expect(deliver).toHaveBeenCalledOnce()
    expect(warnings).not.toHaveBeenCalled()
  })

  it('is requeued if it cannot be delivered now', async () => {
    const { queue, completed, add, startConsumer } = openConsumerFixture(server.url)
    await add('a-chunk')
    const deliver = vi.fn<Deliver>().mockRejectedValueOnce(new RequeueError('stopping'))
    const consumer = startConsumer({ deliver })
    await vi.waitFor(() => expect(deliver).toHaveBeenCalledTimes(2), WAIT_MS)
    await consumer.close()
    expect(completed).toEqual(['a-chunk'])
    expect(await queue.getJobCounts()).toMatchObject({ waiting: 0, active: 0, failed: 0 })
  })

  it('stays active until its lock expires if Redis rejects the requeue', async () => {
    const { queue, add, startConsumer } = openConsumerFixture(server.url)
    await add('a-chunk')
    const deliver = vi.fn<Deliver>().mockRejectedValueOnce(new RequeueError('stopping'))
    vi.spyOn(Job.prototype, 'moveToWait').mockRejectedValueOnce(new Error('NOREPLICAS'))
    const consumer = startConsumer({ deliver, lockDurationMs: 1_000 })
    await vi.waitFor(() => expect(deliver).toHaveBeenCalledTimes(1), WAIT_MS)
    expect(await queue.getJobCounts()).toMatchObject({ active: 1, failed: 0 })
    await vi.waitFor(() => expect(deliver).toHaveBeenCalledTimes(2), WAIT_MS)
    await consumer.close()
    expect(await queue.getJobCounts()).toMatchObject({ waiting: 0, active: 0, failed: 0 })
  })

  it.each([
    ['of an unknown version', { v: 2 as 1 }],
    ['with other columns', { columns: '0123abcd' }],
  ])('%s waits for another worker', async (_what, change) => {
    const { queue, delivered, add, startConsumer } = openConsumerFixture(server.url)
    await add('new', { ...chunkOf('row\n'), ...change })
    const consumer = startConsumer()
    await vi.waitFor(async () => expect(await queue.getJobCounts()).toMatchObject({ delayed: 1 }), WAIT_MS)
    await consumer.close()
    expect(await queue.getJobCounts()).toMatchObject({ waiting: 0, active: 0, failed: 0 })
    expect(delivered).toEqual([])
  })

  it('moves to the failed jobs, complete and with the reason, after an error of its delivery', async () => {
    const { queue, completed, errors, add, startConsumer } = openConsumerFixture(server.url)
    const chunk = chunkOf('row\n')
    await add('a-chunk', chunk)
    const deliver = vi.fn<Deliver>().mockRejectedValue(new Error('a bug'))
    const consumer = startConsumer({ deliver })
    await vi.waitFor(async () => expect(await queue.getJobCounts()).toMatchObject({ failed: 1 }), WAIT_MS)
    await consumer.close()
    expect(await queue.getJobCounts()).toMatchObject({ waiting: 0, active: 0, delayed: 0, failed: 1 })
    const [job] = await queue.getFailed()
    expect(job).toMatchObject({ id: 'a-chunk', failedReason: 'a bug', data: chunk })
    expect(deliver).toHaveBeenCalledOnce()
    expect(completed).toEqual([])
    expect(errors).toHaveBeenCalledOnce()
  })

  it('can be loaded while its job exists', async () => {
    const { add, startConsumer, delivered } = openConsumerFixture(server.url)
    const chunk = chunkOf('row\n')
    const consumer = startConsumer({ chunksMax: 0 })
    await add('a-chunk', chunk)
    expect(await consumer.load('a-chunk')).toEqual({
      id: 'a-chunk',
      rows: chunk.rows,
      bytes: chunk.bytes,
      frame: Buffer.from(chunk.frame, 'base64'),
    })
    expect(await consumer.load('another')).toBeUndefined()
    expect(delivered).toEqual([])
  })
})

describe('the lock of a chunk in hand', () => {
  const HOUR_MS = 3_600_000

  it.each([
    ['back', -HOUR_MS],
    ['forward', HOUR_MS],
  ])('does not expire when the clock is set %s by an hour', async (_direction, stepMs) => {
    const { completed, warnings, add, startConsumer } = openConsumerFixture(server.url)
    await add('a-chunk')
    const wallMs = Date.now
    const deliver = vi.fn<Deliver>(async () => {
      vi.spyOn(Date, 'now').mockImplementation(() => wallMs() + stepMs)
      await sleep(3_000)
    })
    startConsumer({ deliver, lockDurationMs: 1_000 })
    // It would find the chunk stalled.
    startConsumer({ deliver, lockDurationMs: 1_000 })
    await vi.waitFor(() => expect(completed).toEqual(['a-chunk']), WAIT_MS)
    expect(deliver).toHaveBeenCalledOnce()
    expect(warnings).not.toHaveBeenCalled()
  })
})

describe('the monitor of fetches', () => {
  const ready = { ready: true, reasons: [] }

  it('reports that Redis answers, with and without room for chunks', async () => {
    const { startConsumer } = openConsumerFixture(server.url)
    const [roomy, full] = [newMonitor(), newMonitor()]
    startConsumer({ fetchMonitor: roomy })
    startConsumer({ fetchMonitor: full, chunksMax: 0 })
    expect([roomy.readiness.ready, full.readiness.ready]).toEqual([false, false])
    await vi.waitFor(() => expect([roomy.readiness, full.readiness]).toEqual([ready, ready]), WAIT_MS)
  })

  it.each([
    ['OOM', ['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0']],
    [
      'NOREPLICAS',
      ['CONFIG', 'SET', 'min-replicas-to-write', '1'],
      ['CONFIG', 'SET', 'min-replicas-to-write', '0'],
    ],
    ['READONLY', ['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE']],
  ])('reports that Redis rejects fetches with %s, until one succeeds', async (code, cause, end) => {
    const { redis, startConsumer } = openConsumerFixture(server.url)
    const { proxied } = await openProxied()
    const call = ([command = '', ...args]: readonly string[]): Promise<unknown> =>
      redis.call(command, ...args)
    const fetchMonitor = newMonitor()
    startConsumer({ redis: proxied, fetchMonitor })
    await vi.waitFor(() => expect(fetchMonitor.readiness).toEqual(ready), WAIT_MS)
    try {
      await call(cause)
      await vi.waitFor(() => expect(fetchMonitor.readiness.reasons.join('')).toContain(code), WAIT_MS)
      await sleep(WATCHED_MS)
      expect(fetchMonitor.readiness.reasons.join('')).toContain(code)
    } finally {
      await call(end)
    }
    await vi.waitFor(() => expect(fetchMonitor.readiness).toEqual(ready), WAIT_MS)
  })

  it('ignores a consumer that closes', async () => {
    const { startConsumer } = openConsumerFixture(server.url)
    const fetchMonitor = newMonitor()
    await startConsumer({ fetchMonitor }).close()
    expect(fetchMonitor.readiness).toEqual(ready)
  })
})

describe('a completion', () => {
  it('waits for a Redis that is unavailable', async () => {
    const { queue, completed, warnings, add, startConsumer } = openConsumerFixture(server.url)
    const { proxy, proxied } = await openProxied()
    await add('a-chunk')
    const deliver = vi.fn<Deliver>(() => proxy.down())
    startConsumer({ redis: proxied, deliver })
    await vi.waitFor(() => expect(deliver).toHaveBeenCalledOnce(), WAIT_MS)
    await sleep(WATCHED_MS)
    expect(completed).toEqual([])
    expect(await queue.getJobCounts()).toMatchObject({ active: 1 })
    await proxy.up()
    await vi.waitFor(() => expect(completed).toEqual(['a-chunk']), WAIT_MS)
    expect(deliver).toHaveBeenCalledOnce()
    expect(await queue.getJob('a-chunk')).toBeUndefined()
    expect(warnings).not.toHaveBeenCalled()
  })

  it.each(['Connection is closed.', 'connect ECONNREFUSED 127.0.0.1:6379'])(
    'is retried after the error: %s',
    async (message) => {
      const { queue, delivered, completed, warnings, add, startConsumer } = openConsumerFixture(server.url)
      await add('a-chunk')
      vi.spyOn(Job.prototype, 'moveToCompleted')
        .mockRejectedValueOnce(new Error(message))
        .mockRejectedValueOnce(new Error(message))
      startConsumer()
      await vi.waitFor(() => expect(completed).toEqual(['a-chunk']), WAIT_MS)
      expect(delivered).toEqual(['a-chunk'])
      expect(await queue.getJob('a-chunk')).toBeUndefined()
      expect(warnings).not.toHaveBeenCalled()
    },
  )

  it('that Redis rejects leaves the job active until its lock expires', async () => {
    const { queue, delivered, completed, warnings, add, startConsumer } = openConsumerFixture(server.url)
    await add('a-chunk')
    vi.spyOn(Job.prototype, 'moveToCompleted').mockRejectedValueOnce(new Error('NOREPLICAS'))
    const consumer = startConsumer({ lockDurationMs: 1_000 })
    await vi.waitFor(() => expect(warnings).toHaveBeenCalledOnce(), WAIT_MS)
    expect(await queue.getJobCounts()).toMatchObject({ waiting: 0, active: 1, failed: 0 })
    expect(completed).toEqual([])
    await vi.waitFor(() => expect(completed).toEqual(['a-chunk']), WAIT_MS)
    await consumer.close()
    expect(delivered).toEqual(['a-chunk', 'a-chunk'])
    expect(await queue.getJobCounts()).toMatchObject({ waiting: 0, active: 0, failed: 0 })
  })

  it('in flight is not reported as a lost lock', async () => {
    const { completed, warnings, add, startConsumer } = openConsumerFixture(server.url)
    const { proxy, proxied } = await openProxied()
    await add('a-chunk')
    const deliver = vi.fn<Deliver>(async () => proxy.hold('both'))
    startConsumer({ redis: proxied, deliver, lockDurationMs: 4_000 })
    await vi.waitFor(() => expect(deliver).toHaveBeenCalledOnce(), WAIT_MS)
    // A renewal is sent while the completion is held. Redis gets it after the completion has released the lock.
    await sleep(1_500)
    proxy.resume()
    await vi.waitFor(() => expect(completed).toEqual(['a-chunk']), WAIT_MS)
    await sleep(100)
    expect(warnings).not.toHaveBeenCalled()
  })
})

describe('the consumer', () => {
  it('pauses while Redis is full, and continues when it is not', async () => {
    const { redis, delivered, warnings, add, startConsumer } = openConsumerFixture(server.url)
    await add('a-chunk')
    await redis.config('SET', 'maxmemory', '1')
    startConsumer()
    await sleep(WATCHED_MS)
    await redis.config('SET', 'maxmemory', '0')
    expect(delivered).toEqual([])
    expect(warnings).toHaveBeenCalled()
    expect(warnings.mock.calls.length).toBeLessThan(20)
    await vi.waitFor(() => expect(delivered).toEqual(['a-chunk']), WAIT_MS)
  })

  it('does not log the errors that its connection reports', async () => {
    const { redis, queue, delivered, warnings, add, startConsumer } = openConsumerFixture(server.url)
    // Until then the queue has a second listener.
    await queue.waitUntilReady()
    const listeners = redis.listenerCount('error')
    const consumer = startConsumer()
    redis.emit('error', Object.assign(new Error('LOADING Redis is loading'), { name: 'ReplyError' }))
    await add('a-chunk')
    await vi.waitFor(() => expect(delivered).toEqual(['a-chunk']), WAIT_MS)
    expect(warnings).not.toHaveBeenCalled()
    await consumer.close()
    expect(redis.listenerCount('error')).toBe(listeners)
  })

  it('opens no connection', async () => {
    const { redis, delivered, add, startConsumer } = openConsumerFixture(server.url)
    const connections = async (): Promise<string | undefined> =>
      /connected_clients:(\d+)/.exec(await redis.info('clients'))?.[1]
    await add('a-chunk')
    const before = await connections()
    startConsumer()
    await vi.waitFor(() => expect(delivered).toEqual(['a-chunk']), WAIT_MS)
    await sleep(WATCHED_MS)
    expect(await connections()).toBe(before)
  })
})
