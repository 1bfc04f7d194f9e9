import type { NewChunk, QueueEnd, StoredBatch } from '@sluice/queue'
import { createLogger, defineScript, plainRedis } from '@sluice/runtime'
import { vi } from 'vitest'
import { batchFinisher } from '../../packages/queue/src/batch-finish.ts'
import { readJob } from '../../packages/queue/src/chunk.ts'
import { closeShard, COMPLETE, type CompleteScript } from '../../packages/queue/src/completeness.ts'
import { HeldJobs, keepLocks } from '../../packages/queue/src/held-jobs.ts'
import { jobFetcher, type JobFetcher } from '../../packages/queue/src/job-fetch.ts'
import { jobMover } from '../../packages/queue/src/job-moves.ts'
import { readRowTotals } from '../../packages/queue/src/queue-names.ts'
import { ADD_RECORDED, type AddScript, prepareAdd } from '../../packages/queue/src/recorded-add.ts'
import { ConsumerFixture, WAIT_MS } from '../../packages/queue/test/support/consumer-fixture.ts'
import { LOCK_MS, SimulatedRedis } from './simulated-redis.ts'

/** A lock that was renewed. Short, because the real locks are renewed at an interval that depends on it. */
export const RENEWED_LOCK_MS = 2_000
/** The interval of the real check for stalled jobs. */
const STALLED_CHECK_MS = 20
/** The first check after a lock expired marks the job, and the next one requeues it. A check that is early does nothing. */
const STALLED_CHECKS = 6

export type Tokens = ReadonlyMap<string, string>

/** `SimulatedRedis`, whose time is the real one until `pass`. */
export function simulatedScripts() {
  let passedMs = 0
  const redis = new SimulatedRedis({
    get nowMs() {
      return passedMs + performance.now()
    },
  })
  return {
    ledger: redis,
    nowMs: () => passedMs + performance.now(),
    add: redis.add.bind(redis),
    complete: redis.complete.bind(redis),
    fetch: redis.fetch.bind(redis),
    yieldTurn: redis.yieldTurn.bind(redis),
    load: redis.load.bind(redis),
    renew: redis.renew.bind(redis),
    requeueStalled: redis.requeueStalled.bind(redis),
    requeue: redis.requeue.bind(redis),
    fail: redis.fail.bind(redis),
    finish: redis.finish.bind(redis),
    counts: () => ({ jobs: redis.jobs, failed: redis.failed, totals: redis.totals }),
    /** Lets time pass for all that expires. */
    pass: (ms: number) => void (passedMs += ms),
  }
}

export type QueueScripts = ReturnType<typeof simulatedScripts> | ReturnType<typeof realScripts>

/** What `SimulatedRedis` simulates: the code of `packages/queue` on a queue in a real Redis. It is closed at the end of the test. */
export function realScripts(url: string) {
  const fixture = new ConsumerFixture(url)
  const { redis, names, ledger } = fixture
  const queue = fixture.openQueue()
  const mover = jobMover(redis, names)
  const addScript: AddScript = defineScript(redis, ADD_RECORDED)
  const completeScript: CompleteScript = defineScript(redis, COMPLETE)
  const fetchers = new Map<string, JobFetcher>()

  /** Runs the periodic tasks of a worker until they have run this many scripts. */
  const whileLocksRun = async (jobs: HeldJobs, lockDurationMs: number, scripts: number): Promise<void> => {
    const before = await fixture.scriptRuns()
    const stop = keepLocks({ redis, names, lockDurationMs, logger: createLogger('test', 'silent') }, jobs)
    const haveRun = async (): Promise<boolean> => (await fixture.scriptRuns()) - before >= scripts
    await vi.waitUntil(haveRun, { timeout: WAIT_MS, interval: STALLED_CHECK_MS })
    stop()
  }

  return {
    ledger,
    nowMs: async () => {
      const [seconds = 0, microseconds = 0] = await redis.time()
      return seconds * 1_000 + Math.floor(microseconds / 1_000)
    },
    add: async (chunkId: string, chunk: NewChunk, notAfterMs: number) => {
      const send = await prepareAdd(addScript, queue, names, { chunkId, chunk })
      const { isLate, admittedMs } = await send(notAfterMs)
      if (isLate) throw new Error('the deadline has passed')
      return admittedMs
    },
    complete: async (closedMs: number) => (await closeShard(completeScript, names, closedMs))[0],
    fetch: async (workerId: string, count: number, isBusy: boolean) => {
      const fetcher = fetchers.get(workerId) ?? jobFetcher(redis, names, workerId, LOCK_MS)
      fetchers.set(workerId, fetcher)
      const fetched = await fetcher.fetch(count, isBusy)
      if (fetched === undefined) return 'taken'
      const { jobs, hasMore } = fetched
      const chunks = jobs.map(({ id, json, frame }) => {
        const chunk = readJob(id, json, frame)
        if (typeof chunk === 'string') throw new Error(`the job ${id} is ${chunk}`)
        return chunk
      })
      return { chunks, hasMore, tokens: new Map(jobs.map(({ id, token }) => [id, token])) }
    },
    yieldTurn: async (workerId: string) => fetchers.get(workerId)?.yieldTurn(),
    load: async (ids: readonly string[]) => {
      const consumer = fixture.openConsumer()
      const loaded = await consumer.load(ids)
      // Otherwise its periodic tasks would run scripts, too.
      await consumer.close()
      return loaded
    },
    renew: (tokens: Tokens, lockMs = LOCK_MS) => whileLocksRun(heldJobs(tokens), lockMs, 2),
    requeueStalled: () => whileLocksRun(new HeldJobs(), STALLED_CHECK_MS, STALLED_CHECKS),
    requeue: async (tokens: Tokens, end: QueueEnd) => {
      const jobs = [...tokens].map(([id, token]) => ({ id, token }))
      await mover.requeue(jobs, end)
    },
    fail: async (id: string, token: string) => {
      await mover.fail({ id, token }, new Error('a reason'))
    },
    finish: (batch: StoredBatch, repair: number | undefined, tokens: Tokens) =>
      batchFinisher(plainRedis(redis), names, heldJobs(tokens))(batch, repair),
    counts: async () => {
      const { failed = 0, ...others } = await fixture.counts()
      const totals = readRowTotals(await redis.hgetall(names.totalsKey))
      return { jobs: Object.values(others).reduce((sum, count) => sum + count, 0), failed, totals }
    },
    pass: async (ms: number) => {
      for (const key of await redis.keys(`${names.queuePrefix}:*`)) {
        const leftMs = await redis.pttl(key)
        // A key without a TTL has a negative one.
        if (leftMs >= 0) await redis.pexpire(key, Math.max(0, leftMs - ms))
      }
      for (const id of await redis.zrange(names.admittedKey, '0', '-1'))
        await redis.zincrby(names.admittedKey, -ms, id)
    },
  }
}

function heldJobs(tokens: Tokens): HeldJobs {
  const jobs = new HeldJobs()
  for (const [id, token] of tokens) jobs.add({ id, token })
  return jobs
}
