import type { Chunk, QueueEnd, RowTotals, StoredBatch } from '@sluice/queue'
import { createLogger, defineScript, plainRedis } from '@sluice/runtime'
import { vi } from 'vitest'
import { BatchFinisher } from '../../packages/queue/src/batch-finish.ts'
import type { BatchLedger } from '../../packages/queue/src/batch-ledger.ts'
import type { bullmqQueue } from '../../packages/queue/src/bullmq-internals.ts'
import { decodeChunk, readJobData } from '../../packages/queue/src/chunk.ts'
import { HeldJobs, JobLocks } from '../../packages/queue/src/held-jobs.ts'
import { JobFetcher } from '../../packages/queue/src/job-fetch.ts'
import { JobMover } from '../../packages/queue/src/job-moves.ts'
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
export class SimulatedScripts extends SimulatedRedis {
  readonly #passed: { ms: number }

  constructor() {
    const passed = { ms: 0 }
    super({
      get nowMs() {
        return passed.ms + performance.now()
      },
    })
    this.#passed = passed
  }

  get ledger(): this {
    return this
  }

  nowMs(): number {
    return this.#passed.ms + performance.now()
  }

  counts(): { readonly jobs: number; readonly failed: number; readonly totals: RowTotals } {
    const { jobs, failed, totals } = this
    return { jobs, failed, totals }
  }

  /** Lets time pass for all that expires. */
  pass(ms: number): void {
    this.#passed.ms += ms
  }
}

/** What `SimulatedRedis` simulates: the code of `packages/queue` on a queue in a real Redis. It is closed at the end of the test. */
export class RealScripts {
  readonly #fixture: ConsumerFixture
  readonly #queue: ReturnType<typeof bullmqQueue>
  readonly #addScript: AddScript
  readonly #mover: JobMover
  readonly #fetchers = new Map<string, JobFetcher>()

  constructor(url: string) {
    this.#fixture = new ConsumerFixture(url)
    const { redis, names } = this.#fixture
    this.#queue = this.#fixture.openQueue()
    this.#mover = new JobMover(redis, names)
    this.#addScript = defineScript(redis, ADD_RECORDED)
  }

  get ledger(): BatchLedger {
    return this.#fixture.ledger
  }

  async nowMs() {
    const [seconds = 0, microseconds = 0] = await this.#fixture.redis.time()
    return seconds * 1_000 + Math.floor(microseconds / 1_000)
  }

  async add(chunkId: string, chunk: Chunk, notAfterMs: number) {
    const send = await prepareAdd(this.#addScript, this.#queue, this.#fixture.names, { chunkId, chunk })
    const { isLate } = await send(notAfterMs)
    if (isLate) throw new Error('the deadline has passed')
  }

  async fetch(workerId: string, count: number, isBusy: boolean) {
    const { redis, names } = this.#fixture
    const fetcher = this.#fetchers.get(workerId) ?? new JobFetcher(redis, names, workerId, LOCK_MS)
    this.#fetchers.set(workerId, fetcher)
    const { isMine, jobs, hasMore } = await fetcher.fetch(count, isBusy)
    if (!isMine) return 'taken'
    const chunks = jobs.map(({ id, json }) => {
      const data = readJobData(json)
      if (data.kind !== 'chunk') throw new Error(`the job ${id} is not a chunk but ${data.kind}`)
      return decodeChunk(id, data.chunk)
    })
    return { chunks, hasMore, tokens: new Map(jobs.map(({ id, token }) => [id, token])) }
  }

  async yieldTurn(workerId: string) {
    await this.#fetchers.get(workerId)?.yieldTurn()
  }

  async load(ids: readonly string[]) {
    const consumer = this.#fixture.openConsumer()
    try {
      return await consumer.load(ids)
    } finally {
      // Otherwise its periodic tasks would run scripts, too.
      await consumer.close()
    }
  }

  async renew(tokens: Tokens, lockMs = LOCK_MS) {
    await this.#whileLocksRun(heldJobs(tokens), lockMs, 2)
  }

  async requeueStalled() {
    await this.#whileLocksRun(new HeldJobs(), STALLED_CHECK_MS, STALLED_CHECKS)
  }

  async requeue(tokens: Tokens, end: QueueEnd) {
    await this.#mover.requeue(
      [...tokens].map(([id, token]) => ({ id, token, bytes: 0 })),
      end,
    )
  }

  async fail(id: string, token: string) {
    await this.#mover.fail({ id, token }, new Error('a reason'))
  }

  finish(batch: StoredBatch, repair: number | undefined, tokens: Tokens) {
    const { redis, names } = this.#fixture
    return new BatchFinisher(plainRedis(redis), names, heldJobs(tokens)).finish(batch, repair)
  }

  async counts() {
    const { redis, names } = this.#fixture
    const { failed = 0, ...others } = await this.#fixture.counts()
    const totals = readRowTotals(await redis.hgetall(names.totalsKey))
    return { jobs: Object.values(others).reduce((sum, count) => sum + count, 0), failed, totals }
  }

  async pass(ms: number) {
    const { redis, names } = this.#fixture
    for (const key of await redis.keys(`${names.queuePrefix}:*`)) {
      const leftMs = await redis.pttl(key)
      // A key without a TTL has a negative one.
      if (leftMs >= 0) await redis.pexpire(key, Math.max(0, leftMs - ms))
    }
  }

  /** Runs the periodic tasks of a worker until they have run this many scripts. */
  async #whileLocksRun(jobs: HeldJobs, lockDurationMs: number, scripts: number): Promise<void> {
    const { redis, names } = this.#fixture
    const before = await this.#fixture.scriptRuns()
    const locks = new JobLocks({ redis, names, lockDurationMs, logger: createLogger('test', 'silent') }, jobs)
    await vi.waitUntil(async () => (await this.#fixture.scriptRuns()) - before >= scripts, {
      timeout: WAIT_MS,
      interval: STALLED_CHECK_MS,
    })
    locks.stop()
  }
}

function heldJobs(tokens: Tokens): HeldJobs {
  const jobs = new HeldJobs()
  for (const [id, token] of tokens) jobs.add({ id, token, bytes: 0 })
  return jobs
}
