import { closeRedis } from '@sluice/harness/close-redis'
import { FaultProxy } from '@sluice/harness'
import { packBlocks } from '@sluice/rows'
import { namedRows } from '@sluice/rows/testing'
import { connectRedis, type MonotonicClock, processClock, type RedisConnection } from '@sluice/runtime'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { type NewChunk, encodeChunk } from '../src/chunk.ts'
import { ChunkQueue } from '../src/chunk-queue.ts'
import { QueueUnavailableError } from '../src/recorded-add.ts'
import { ConsumerFixture } from './support/consumer-fixture.ts'

/** The API gives an add this much time. */
const ADD_DEADLINE_MS = 1_800
/** The deadline of an add that is to miss it. */
const SHORT_DEADLINE_MS = 400
/** A delay after which Redis must not store an add. It is longer than a reply takes on a busy machine. */
const LATE_MS = 800
/** Shorter than the age at which the clock of Redis is measured again. */
const CLOCK_STEP_MS = 8_000
/** A few round trips to Redis. */
const ATTEMPT_MS = 200
const HOUR_MS = 3_600_000

const chunk = encodeChunk(packBlocks(namedRows('a', 'b')))
/** The same queue, without the proxy. */
let fixture: ConsumerFixture
let proxy: FaultProxy
let redis: RedisConnection
let queue: ChunkQueue
let clock: TestClock

beforeEach(async () => {
  const { redisUrl } = inject('services')
  fixture = new ConsumerFixture(redisUrl)
  proxy = await FaultProxy.open(redisUrl)
  onTestFinished(() => proxy.down())
  clock = new TestClock()
  ;({ redis, queue } = openQueue(clock))
  onTestFinished(() => proxy.heal())
  await connected()
})

/** A queue behind the proxy. */
function openQueue(its: MonotonicClock = processClock): {
  readonly redis: RedisConnection
  readonly queue: ChunkQueue
} {
  const connection = connectRedis(proxy.url, { failFast: true, commandTimeoutMs: ADD_DEADLINE_MS })
  connection.on('error', () => undefined)
  const opened = new ChunkQueue(connection, fixture.names, { clock: its })
  onTestFinished(async () => {
    await opened.close()
    await closeRedis(connection)
  })
  return { redis: connection, queue: opened }
}

const add = (chunkId: string, withinMs = ADD_DEADLINE_MS): Promise<unknown> =>
  queue.add(chunkId, chunk, clock.nowMs() + withinMs)

/** Adds a record and, unless it is undefined, a chunk. */
async function addRecorded(
  id: string,
  added: NewChunk | undefined,
  withinMs = ADD_DEADLINE_MS,
): Promise<void> {
  const quota = fixture.names.idempotencyQuotaKey('demo')
  const records = [{ name: fixture.names.idempotencyKey(id), text: `record of ${id}`, quota }]
  const recordLimits = { windowMs: 60_000, recordsMax: 1_000 }
  await queue.add(id, added, clock.nowMs() + withinMs, { records, recordLimits })
}

/** The result of an add: `added`, `unavailable`, or a string for anything else. */
const resultOfAdd = (chunkId: string, withinMs = ADD_DEADLINE_MS): Promise<string> =>
  add(chunkId, withinMs).then(
    () => 'added',
    (error: unknown) => (error instanceof QueueUnavailableError ? 'unavailable' : String(error)),
  )

/** The clock of a process that a test suspends. */
class TestClock implements MonotonicClock {
  /** Added to the clock. It stands for a suspended process, or for a Redis whose clock is behind. */
  aheadMs = 0
  #stoppedAtMs: number | undefined
  #suspension: (() => Promise<void>) | undefined

  nowMs(): number {
    return this.#stoppedAtMs ?? performance.now() + this.aheadMs
  }

  async sleep(ms: number): Promise<void> {
    await processClock.sleep(ms)
    const suspension = this.#suspension
    this.#suspension = undefined
    await suspension?.()
  }

  /** From now on the clock shows the same time, like the clock of a paused virtual machine. */
  stop(): void {
    this.#stoppedAtMs = this.nowMs()
  }

  /** What happens during the next wait before a retry. */
  suspendInWait(suspension: () => Promise<void>): void {
    this.#suspension = suspension
  }
}

/** The ids of the waiting jobs, sorted. */
const waitingIds = async (): Promise<string[]> => (await fixture.waiting()).toSorted()

const connected = (): Promise<boolean> => vi.waitUntil(() => queue.isConnected)

/** Connects again, to what may be another Redis. */
async function reconnect(happen: () => void): Promise<void> {
  proxy.reset()
  await vi.waitUntil(() => !queue.isConnected)
  happen()
  await connected()
}

/** Adds a chunk whose reply is lost. The process is suspended until the chunk was delivered and all its records expired. */
async function expectOneAdd(withinMs: number, suspension: () => unknown): Promise<void> {
  await add('warm-up')
  proxy.cutAnswerTo('the-chunk')
  clock.suspendInWait(async () => {
    expect(await fixture.queue.remove('the-chunk')).toBe(1)
    await suspension()
    await connected()
  })
  const result = await resultOfAdd('the-chunk', withinMs)
  // An attempt may outlive the result.
  await sleep(ATTEMPT_MS)
  expect(await waitingIds()).toEqual(['warm-up'])
  expect(result).toBe('unavailable')
}

it('adds no job for a chunk that is in a batch, since its first attempt was delivered', async () => {
  await fixture.redis.set(fixture.names.chunkKey('delivered'), 'batch')
  await addRecorded('delivered', chunk)
  await add('delivered')
  expect(await waitingIds()).toEqual([])
  expect(await fixture.redis.exists(fixture.names.idempotencyKey('delivered'), fixture.names.totalsKey)).toBe(
    1,
  )
})

/** The names of the keys that the add has left in Redis. */
async function keysOfDelayed(run: (withinMs: number) => Promise<unknown>): Promise<string[]> {
  proxy.hold('request')
  await expect(run(SHORT_DEADLINE_MS)).rejects.toThrow(QueueUnavailableError)
  await sleep(LATE_MS)
  expect(proxy.heldBytes('request')).toBeGreaterThan(0)
  proxy.resume()
  // Redis replies in order.
  await redis.ping()
  const keys = await fixture.redis.keys(`${fixture.names.queuePrefix}:*delayed-chunk*`)
  return [...keys, ...(await fixture.waiting()).filter((id) => id === 'delayed-chunk')]
}
const addDelayed = (withinMs: number): Promise<unknown> => add('delayed-chunk', withinMs)

it('a connection that is cut between the add and its reply causes a retry, and there is one job', async () => {
  await add('warm-up')
  proxy.cutAnswerTo('the-chunk')
  await add('the-chunk')
  expect(proxy.cuts).toBe(1)
  expect(await waitingIds()).toEqual(['the-chunk', 'warm-up'])
})

describe('a Redis that is unavailable', () => {
  it.each([
    ['is down', () => proxy.down()],
    ['stalls', async () => proxy.hold('both')],
  ])('is reported by each add if it %s', async (_what, fail) => {
    await fail()
    expect(await resultOfAdd('one')).toBe('unavailable')
    expect(await resultOfAdd('two')).toBe('unavailable')
  })

  it('gets the add if it recovers before the deadline', async () => {
    await proxy.down()
    const pending = resultOfAdd('patient')
    await sleep(100)
    await proxy.up()
    expect(await pending).toBe('added')
    expect(await waitingIds()).toEqual(['patient'])
  })

  it('is used when it becomes available, if it was down at the start', async () => {
    await proxy.down()
    const { queue: late } = openQueue()
    await expect(late.add('one', chunk, performance.now() + 200)).rejects.toThrow(QueueUnavailableError)
    await proxy.up()
    await expect.poll(() => late.isConnected).toBe(true)
    await late.add('two', chunk, performance.now() + ADD_DEADLINE_MS)
    expect(await waitingIds()).toEqual(['two'])
  })
})

describe('an add whose reply was lost is not repeated after the deadline', () => {
  it('by a process that was suspended', async () => {
    await expectOneAdd(ADD_DEADLINE_MS, () => {
      clock.aheadMs += 600_000
      // Counts every attempt that is sent from now on.
      proxy.cutAnswerTo('the-chunk')
    })
    expect(proxy.cuts).toBe(1)
  })

  it('even if the clock of the process stopped meanwhile', async () => {
    await expectOneAdd(SHORT_DEADLINE_MS, () => {
      clock.stop()
      return sleep(SHORT_DEADLINE_MS + LATE_MS)
    })
  })
})

describe('an add that the network delays until after its deadline', () => {
  beforeEach(() => add('warm-up'))

  it.each([
    ['a chunk', addDelayed],
    ['a chunk with records', (withinMs: number) => addRecorded('delayed-chunk', chunk, withinMs)],
    ['records alone', (withinMs: number) => addRecorded('delayed-chunk', undefined, withinMs)],
  ])('stores nothing: %s', async (_name, run) => {
    expect(await keysOfDelayed(run)).toEqual([])
  })

  it('stores nothing if a new connection led to a Redis whose clock is behind', async () => {
    await reconnect(() => (clock.aheadMs += CLOCK_STEP_MS))
    expect(await keysOfDelayed(addDelayed)).toEqual([])
  })

  it('stores nothing if the clocks drifted apart while there were no adds', async () => {
    clock.aheadMs += HOUR_MS
    expect(await keysOfDelayed(addDelayed)).toEqual([])
  })

  it('stores nothing if the process was suspended during the reply to an earlier add', async () => {
    proxy.hold('answer')
    const earlier = add('earlier', HOUR_MS)
    await vi.waitUntil(() => proxy.heldBytes('answer') > 0)
    clock.aheadMs += CLOCK_STEP_MS
    proxy.resume()
    await earlier
    expect(await keysOfDelayed(addDelayed)).toEqual([])
  })
})

describe('the clock of Redis', () => {
  it('takes no extra round trip while adds get replies', async () => {
    await add('warm-up')
    const commands = vi.spyOn(redis, 'sendCommand')
    for (let i = 0; i < 10; i += 1) await add(`chunk-${i}`)
    await addRecorded('recorded', chunk)
    expect(commands).toHaveBeenCalledTimes(11)
  })

  it.each([CLOCK_STEP_MS, HOUR_MS])('may be set %d ms forward without failing an add', async (stepMs) => {
    await add('before')
    clock.aheadMs -= stepMs
    await Promise.all([add('one'), addRecorded('two', chunk)])
    expect(await waitingIds()).toEqual(['before', 'one', 'two'])
  })

  it.each([CLOCK_STEP_MS, -CLOCK_STEP_MS])('may differ by %d ms on a new connection', async (stepMs) => {
    await add('before')
    await reconnect(() => (clock.aheadMs += stepMs))
    await add('afterwards')
    expect(await waitingIds()).toEqual(['afterwards', 'before'])
  })
})
