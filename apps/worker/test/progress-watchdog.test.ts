import type { HeldChunk } from '@sluice/queue'
import { createLogger, type Logger } from '@sluice/runtime'
import { beforeEach, describe, expect, it, type MockInstance, vi } from 'vitest'
import { HeldBudget } from '../src/held-budget.ts'
import { InsertHealth } from '../src/insert-health.ts'
import { workerLimits } from '../src/limits.ts'
import {
  NoProgressError,
  ProgressWatchdog,
  type WatchedShard,
  watchdogLimits,
} from '../src/progress-watchdog.ts'
import { Retrier } from '../src/retrier.ts'
import { Semaphore } from '../src/semaphore.ts'
import type { ShardQueue } from '../src/shard-queue.ts'
import { fetchLimits } from '../src/shard.ts'
import { type RunningShard, type ShardDependencies, startShard } from '../src/start-shard.ts'
import { WorkerCounts } from '../src/worker-counts.ts'
import { insertErrors, makeChunk } from './support/chunks.ts'
import { TestClock } from './support/test-clock.ts'

const { reportAfterMs, exitAfterMs, intervalMs } = watchdogLimits
/** The watchdog notices within this time that a limit has passed. */
const NOTICE_MS = 2 * intervalMs
/** A promise that is never settled by anything. */
const stuck = new Promise<never>(() => undefined)
/** Four times the longest limit. */
const LONG_MS = 4 * exitAfterMs

function unused(): never {
  throw new Error('not used')
}

/** A worker of one or more shards, whose Redis and ClickHouse are under the control of the test. */
class Worker {
  readonly clock = new TestClock()
  readonly #logger: Logger = createLogger('test', 'silent')
  readonly errors: MockInstance = vi.spyOn(this.#logger, 'error')
  readonly stopping = new AbortController()
  readonly insertSlots = new Semaphore(2, this.stopping.signal)
  readonly repairPermits = new Semaphore(2, this.stopping.signal)
  readonly health = new InsertHealth(this.clock, workerLimits, () => this.watchdog.excuse())
  readonly shards: (WatchedShard & { readonly running: RunningShard })[] = []
  /** What each request to Redis does. */
  readonly redis = {
    claim: (): Promise<unknown> => Promise.resolve(),
    read: (): Promise<unknown> => Promise.resolve(),
    finish: (): Promise<unknown> => Promise.resolve(),
    requeue: (): Promise<unknown> => Promise.resolve(),
    fetch: (): Promise<unknown> => Promise.resolve(),
    ask: (): Promise<unknown> => Promise.resolve(),
  }
  /** Makes one attempt to insert a batch. */
  insert: () => Promise<unknown> = () => Promise.resolve()
  /** Batches of chunks that are claimed already. */
  readonly owners = new Map<string, string>()
  /** Whether another worker has the lease of every batch. */
  isLeased = false
  /** Whether it can read what it fetches. Otherwise chunks stay in the queue. */
  canRead = true
  /** Whether chunks stay in hand after their batch is finished. */
  keepsChunks = false
  stored = 0
  ended: unknown
  readonly watchdog = new ProgressWatchdog({
    shards: () => this.shards,
    insertSlots: this.insertSlots,
    repairPermits: this.repairPermits,
    clock: this.clock,
    logger: this.#logger,
  })
  readonly #waiting: HeldChunk[][] = []
  readonly #chunksMax: number

  constructor(shards = 1, chunksMax: number = workerLimits.chunksMax) {
    this.#chunksMax = chunksMax
    for (let shard = 0; shard < shards; shard += 1) this.#start(shard)
    this.watchdog.run().then(
      () => (this.ended = 'stopped'),
      (error: unknown) => (this.ended = error),
    )
  }

  add(id: string, shard = 0): void {
    this.#waiting[shard]?.push(makeChunk(id))
  }

  /** Adds a chunk every ten seconds, and lets time pass. */
  async feed(ms: number, shard = 0): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += 10_000) {
      this.add(`chunk at ${this.clock.nowMs()}`, shard)
      await this.clock.pass(10_000)
    }
  }

  #start(shard: number): void {
    const waiting: HeldChunk[] = []
    this.#waiting.push(waiting)
    const running = startShard(this.#queue(waiting), this.#dependencies())
    this.shards.push({ shard, running, progress: running.progress, askRedis: () => this.redis.ask() })
  }

  #queue(waiting: HeldChunk[]): ShardQueue {
    const { redis } = this
    const held = new Set<string>()
    const forget = (ids: readonly string[]): void => {
      for (const id of ids) held.delete(id)
    }
    return {
      ledger: {
        claim: async (batchId, ids) => {
          await redis.claim()
          return ids.map((id) => this.owners.get(id) ?? batchId)
        },
        read: async (batchId) => {
          await redis.read()
          const members = [...this.owners.keys()].filter((id) => this.owners.get(id) === batchId)
          return { state: 'claimed', members, splits: new Set(), repairs: 0 }
        },
        recordSplit: () => Promise.resolve(true),
        beginRepair: async () => (this.isLeased ? undefined : { number: 1, splits: new Set() }),
        renewLease: () => Promise.resolve(),
        endLease: () => Promise.resolve(),
      },
      consumer: {
        fetch: async (count) => {
          await redis.fetch()
          if (!this.canRead) await this.clock.sleep(100)
          const chunks = this.canRead ? waiting.splice(0, count) : []
          for (const { id } of chunks) held.add(id)
          return { turn: 'mine', chunks, hasMore: waiting.length > 0 }
        },
        load: async (ids) => ids.map((id) => makeChunk(id)),
        finish: async ({ members }) => {
          await redis.finish()
          if (!this.keepsChunks) forget(members)
          this.stored += members.length
          return true
        },
        requeue: async (ids) => {
          await redis.requeue()
          waiting.push(...ids.map((id) => makeChunk(id)))
          forget(ids)
        },
        fail: async (id) => forget([id]),
        forget,
        get heldChunks() {
          return held.size
        },
        close: () => Promise.resolve(),
      },
    }
  }

  #dependencies(): ShardDependencies {
    const { clock, health, insertSlots, repairPermits } = this
    const { signal } = this.stopping
    const observed = (): Promise<unknown> => health.observe(() => this.insert())
    let batches = 0
    return {
      config: { BATCH_ROWS_MAX: 10, BATCH_WAIT_MS: 50, LOCK_DURATION_MS: 30_000 },
      rowInserter: {
        prepare: () =>
          ({
            run: async () => {
              await observed()
              return 'stored'
            },
          }) as unknown as ReturnType<ShardDependencies['rowInserter']['prepare']>,
        prepareSingle: unused,
        consumeToken: unused,
        findStored: unused,
      },
      deadLetters: { prepare: unused },
      health,
      insertNothing: observed,
      insertSlots,
      repairPermits,
      chunkBudget: new HeldBudget(this.#chunksMax),
      byteBudget: new HeldBudget(workerLimits.heldBytesMax),
      heldInAllShards: () => this.shards.reduce((sum, { running }) => sum + running.heldChunks, 0),
      signal,
      counts: new WorkerCounts(undefined, () => 0),
      retrier: new Retrier({ logger: this.#logger, signal, clock, random: () => 0 }),
      makeId: () => `batch-${(batches += 1)}`,
      workerId: 'me',
      clock,
      fetchLimits,
      logger: this.#logger,
    }
  }
}

let worker: Worker

beforeEach(() => {
  worker = new Worker()
})

/** Lets the worker work, and then makes something go wrong. */
async function startStuck(goWrong: () => void = () => undefined): Promise<void> {
  await worker.clock.pass(60_000)
  goWrong()
  worker.add('a')
  await worker.clock.pass(1_000)
}

/** Lets time pass until the worker must exit. @returns why */
async function untilExit(): Promise<unknown> {
  const reason = expect.stringContaining('shard 0 has made no progress for ') as string
  await worker.clock.pass(reportAfterMs - 2_000)
  expect(worker.watchdog.reasons).toEqual([])
  await worker.clock.pass(NOTICE_MS)
  expect(worker.watchdog.reasons).toEqual([reason])
  expect(worker.watchdog.isAlive).toBe(true)
  expect(worker.ended).toBeUndefined()
  await worker.clock.pass(exitAfterMs - reportAfterMs - NOTICE_MS + 1_500)
  expect(worker.watchdog.isAlive).toBe(false)
  expect(worker.ended).toBeUndefined()
  await worker.clock.pass(NOTICE_MS)
  expect(worker.errors).toHaveBeenCalledTimes(1)
  return worker.ended
}

/** Lets time pass. @returns what the watchdog has logged and reports, and why it has ended */
async function complaintsIn(ms = LONG_MS): Promise<unknown[]> {
  await worker.clock.pass(ms)
  const { errors, watchdog, ended } = worker
  return [...errors.mock.calls, ...watchdog.reasons, ended].filter((each) => each !== undefined)
}

describe('a worker exits', () => {
  it.each(['claim', 'finish', 'fetch'] as const)(
    'if its %s never settles although Redis answers',
    async (request) => {
      await startStuck(() => (worker.redis[request] = () => stuck))
      expect(await untilExit()).toBeInstanceOf(NoProgressError)
    },
  )

  it('if its insert never settles', async () => {
    worker.insert = () => stuck
    await startStuck()
    expect(await untilExit()).toBeInstanceOf(NoProgressError)
    expect(worker.errors.mock.calls[0]).toEqual([
      expect.objectContaining({
        shard: 0,
        heldChunks: 1,
        steps: { claimed: 1 },
        insertSlots: { free: 1, waiting: 0 },
        repairPermits: { free: 2, waiting: 0 },
      }),
      'no progress although work is waiting',
    ])
  })

  it('if the read of the record of a batch never settles', async () => {
    worker.owners.set('a', 'B')
    worker.redis.read = () => stuck
    await startStuck()
    expect(await untilExit()).toBeInstanceOf(NoProgressError)
  })

  it('if one batch is stuck while others are stored', async () => {
    let isFirst = true
    worker.insert = () => {
      const outcome = isFirst ? stuck : Promise.resolve()
      isFirst = false
      return outcome
    }
    await worker.feed(exitAfterMs + 3 * intervalMs)
    expect(worker.stored).toBeGreaterThan(50)
    expect(worker.ended).toBeInstanceOf(NoProgressError)
  })

  it('if permits of insert slots are lost', async () => {
    for (let slot = 0; slot < 2; slot += 1) void worker.insertSlots.run(() => stuck)
    await startStuck()
    expect(await untilExit()).toBeInstanceOf(NoProgressError)
    expect(worker.errors.mock.calls[0]?.[0]).toMatchObject({
      steps: {},
      insertSlots: { free: 0, waiting: 1 },
    })
  })

  it('if a chunk stays in hand and is in no batch', async () => {
    worker.keepsChunks = true
    await startStuck()
    expect(worker.stored).toBe(1)
    expect(await untilExit()).toBeInstanceOf(NoProgressError)
  })

  it('if one of its shards does not fetch, while another one works', async () => {
    worker = new Worker(2)
    await worker.clock.pass(1_000)
    let calls = 0
    // The shards fetch in turns.
    worker.redis.fetch = () => ((calls += 1) === 1 ? stuck : Promise.resolve())
    await worker.feed(exitAfterMs + 3 * intervalMs, 1)
    expect(worker.ended).toBeInstanceOf(NoProgressError)
    expect(String(worker.ended)).toContain('shard 0')
  })

  it('if a step never ends while others wait for slots that are used', async () => {
    worker = new Worker(2)
    worker.redis.finish = () => stuck
    await startStuck()
    for (let slot = 0; slot < 100; slot += 1) void worker.insertSlots.run(() => worker.clock.sleep(20_000))
    useSlots(worker)
    expect(await untilExit()).toBeInstanceOf(NoProgressError)
  })

  it('if a chunk of one shard stays in hand while another shard works', async () => {
    worker = new Worker(2)
    worker.keepsChunks = true
    await startStuck()
    useSlots(worker)
    expect(await untilExit()).toBeInstanceOf(NoProgressError)
  })

  it('if it has no room for chunks although none is in hand', async () => {
    worker = new Worker(1, 0)
    await startStuck()
    expect(await untilExit()).toBeInstanceOf(NoProgressError)
  })

  it('if it has stopped to attempt inserts after they had failed', async () => {
    let attempts = 0
    worker.insert = () => ((attempts += 1) > 20 ? stuck : Promise.reject(insertErrors.transient))
    worker.add('a')
    await worker.clock.pass(exitAfterMs + 300_000)
    expect(worker.ended).toBeInstanceOf(NoProgressError)
  })
})

describe('a worker does not complain', () => {
  it('while nothing is waiting', async () => {
    expect(await complaintsIn()).toEqual([])
  })

  it('while it works', async () => {
    await worker.feed(LONG_MS / 4)
    expect(await complaintsIn(0)).toEqual([])
    expect(worker.stored).toBe(LONG_MS / 4 / 10_000)
  })

  it('while every insert takes nearly its timeout', async () => {
    worker.insert = () => worker.clock.sleep(workerLimits.insertTimeoutMs - 1)
    await worker.feed(LONG_MS / 4)
    expect(await complaintsIn(0)).toEqual([])
  })

  it('while ClickHouse rejects all inserts, and stores everything afterwards', async () => {
    worker.insert = () => Promise.reject(insertErrors.transient)
    for (const id of ['a', 'b', 'c']) worker.add(id)
    expect(await complaintsIn()).toEqual([])
    worker.insert = () => Promise.resolve()
    expect(await complaintsIn(60_000)).toEqual([])
    expect(worker.stored).toBe(3)
  })

  it('while ClickHouse answers no insert before its timeout', async () => {
    worker.insert = async () => {
      await worker.clock.sleep(workerLimits.insertTimeoutMs)
      throw insertErrors.transient
    }
    for (const id of ['a', 'b', 'c']) worker.add(id)
    expect(await complaintsIn()).toEqual([])
  })

  it.each([13_000, workerLimits.insertTimeoutMs])(
    'while ClickHouse is silent for %d ms at each attempt, and chunks wait in several shards',
    async (silentMs) => {
      worker = new Worker(4)
      worker.insert = async () => {
        await worker.clock.sleep(silentMs)
        throw insertErrors.transient
      }
      for (let shard = 0; shard < 4; shard += 1)
        for (const id of ['a', 'b', 'c']) worker.add(`${id}-${shard}`, shard)
      expect(await complaintsIn()).toEqual([])
    },
  )

  it('while Redis does not answer, and works afterwards', async () => {
    const back = Promise.withResolvers<void>()
    for (const request of ['claim', 'finish', 'fetch', 'ask'] as const)
      worker.redis[request] = () => back.promise
    worker.add('a')
    expect(await complaintsIn()).toEqual([])
    back.resolve()
    expect(await complaintsIn(reportAfterMs - intervalMs)).toEqual([])
    expect(worker.stored).toBe(1)
  })

  it('while Redis does not answer after a batch was stored', async () => {
    const back = Promise.withResolvers<void>()
    worker.redis.finish = worker.redis.ask = () => back.promise
    worker.add('a')
    expect(await complaintsIn()).toEqual([])
  })

  it.each(['claim', 'finish', 'fetch'] as const)('while Redis rejects each %s', async (request) => {
    worker.redis[request] = () => Promise.reject(new Error('OOM'))
    worker.add('a')
    expect(await complaintsIn()).toEqual([])
  })

  it('while external reasons show themselves, for example errors of the connection to Redis', async () => {
    worker.redis.finish = () => stuck
    worker.add('a')
    const report = (): void => {
      worker.watchdog.excuse()
      worker.clock.after(60_000, report)
    }
    report()
    expect(await complaintsIn()).toEqual([])
  })

  it('while another worker repairs the batch of its chunks', async () => {
    worker.owners.set('a', 'B')
    worker.isLeased = true
    worker.add('a')
    expect(await complaintsIn()).toEqual([])
  })

  it('about a shard that waits for a slot, while other shards use the slots', async () => {
    worker = new Worker(2)
    worker.insert = () => worker.clock.sleep(20_000)
    await worker.clock.pass(1_000)
    // Others are always before this shard.
    for (let slot = 0; slot < 200; slot += 1) void worker.insertSlots.run(() => worker.clock.sleep(20_000))
    worker.add('a')
    useSlots(worker)
    expect(await complaintsIn(1_500_000)).toEqual([])
  })

  it('while all waiting chunks are of another version', async () => {
    worker.canRead = false
    worker.add('a')
    expect(await complaintsIn()).toEqual([])
  })

  it('after it was suspended', async () => {
    worker.insert = () => worker.clock.sleep(20_000)
    await startStuck()
    worker.clock.jump(2 * exitAfterMs)
    await worker.clock.pass(intervalMs)
    expect(worker.watchdog.isAlive).toBe(true)
    expect(await complaintsIn(60_000)).toEqual([])
  })
})

/** The second shard makes progress. */
function useSlots({ shards, clock }: Worker): void {
  shards[1]?.progress.alive()
  clock.after(10_000, () => useSlots(worker))
}

it('reports when a shard makes progress again', async () => {
  const settled = Promise.withResolvers<void>()
  worker.insert = () => settled.promise
  await startStuck()
  await worker.clock.pass(reportAfterMs + NOTICE_MS)
  expect(worker.watchdog.reasons).toHaveLength(1)
  settled.resolve()
  await worker.clock.pass(NOTICE_MS)
  expect(worker.watchdog.reasons).toEqual([])
  expect(worker.stored).toBe(1)
})

it('ends when it is stopped', async () => {
  worker.insert = () => stuck
  await startStuck()
  worker.watchdog.stop()
  await worker.clock.pass(LONG_MS)
  expect(worker.ended).toBe('stopped')
})
