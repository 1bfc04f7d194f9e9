import type {
  BatchRecord,
  BatchRepair,
  Chunk,
  HeldChunk,
  QueueEnd,
  RowTotals,
  StoredBatch,
} from '@sluice/queue'
import { createLogger, plainRedis, defineScript } from '@sluice/runtime'
import { onTestFinished, vi } from 'vitest'
import { BatchFinisher } from '../../packages/queue/src/batch-finish.ts'
import { bullmqQueue } from '../../packages/queue/src/bullmq-internals.ts'
import { decodeChunk, readJobData } from '../../packages/queue/src/chunk.ts'
import { HeldJobs, JobLocks } from '../../packages/queue/src/held-jobs.ts'
import { JobFetcher } from '../../packages/queue/src/job-fetch.ts'
import { JobMover } from '../../packages/queue/src/job-moves.ts'
import { ADD_RECORDED, type AddScript, prepareAdd } from '../../packages/queue/src/recorded-add.ts'
import { readRowTotals } from '../../packages/queue/src/queue-names.ts'
import { ConsumerFixture, WAIT_MS } from '../../packages/queue/test/support/consumer-fixture.ts'
import { SimulatedRedis } from './simulated-redis.ts'

/** A lock, unless it was renewed. */
export const LOCK_MS = 30_000
/** A lock that was renewed. Short, because the real locks are renewed at an interval that depends on it. */
export const RENEWED_LOCK_MS = 2_000
/** The interval of the real check for stalled jobs. */
const STALLED_CHECK_MS = 20
/** The first check after a lock expired marks the job, and the next one requeues it. A check that is early does nothing. */
const STALLED_CHECKS = 6

export type Tokens = ReadonlyMap<string, string>

/** The operations that `SimulatedRedis` simulates, with tokens of locks as arguments. */
export interface QueueScripts {
  /** @param withinMs the time until the last moment at which Redis may store the add */
  add(id: string, chunk: Chunk, withinMs: number): Promise<'added' | 'late'>
  fetch(
    workerId: string,
    count: number,
    isBusy: boolean,
  ): Promise<
    { readonly chunks: readonly HeldChunk[]; readonly hasMore: boolean; readonly tokens: Tokens } | 'taken'
  >
  yieldTurn(workerId: string): Promise<void>
  load(ids: readonly string[]): Promise<readonly HeldChunk[] | undefined>
  /** Renews locks for `RENEWED_LOCK_MS`. */
  renew(tokens: Tokens): Promise<void>
  requeueStalled(): Promise<void>
  requeue(tokens: Tokens, end: QueueEnd): Promise<void>
  fail(id: string, token: string): Promise<void>
  claim(batchId: string, ids: readonly string[]): Promise<readonly (string | undefined)[]>
  read(batchId: string): Promise<BatchRecord | undefined>
  beginRepair(batchId: string, workerId: string): Promise<BatchRepair | undefined>
  recordSplit(batchId: string, range: string, repair: number): Promise<boolean | 'rejected'>
  renewLease(batchId: string, workerId: string): Promise<void>
  endLease(batchId: string, workerId: string): Promise<void>
  finish(batch: StoredBatch, repair: number | undefined, tokens: Tokens): Promise<boolean>
  counts(): Promise<{ readonly jobs: number; readonly failed: number; readonly totals: RowTotals }>
  /** Lets time pass for all that expires. */
  pass(ms: number): Promise<void>
}

/** The operations of `SimulatedRedis`. */
export class SimulatedScripts implements QueueScripts {
  readonly #time = { nowMs: 0 }
  readonly #redis = new SimulatedRedis(this.#time)
  #fetches = 0

  async add(id: string, chunk: Chunk, withinMs: number): Promise<'added' | 'late'> {
    try {
      this.#redis.add(id, chunk, this.#time.nowMs + withinMs)
      return 'added'
    } catch {
      return 'late'
    }
  }

  async fetch(...[workerId, count, isBusy]: Parameters<QueueScripts['fetch']>) {
    this.#fetches += 1
    const token = `${workerId}:${this.#fetches}`
    const fetch = this.#redis.fetch(workerId, token, count, isBusy, LOCK_MS)
    if (fetch === 'taken') return fetch
    return { ...fetch, tokens: new Map(fetch.chunks.map(({ id }) => [id, token])) }
  }

  async yieldTurn(workerId: string): Promise<void> {
    this.#redis.yieldTurn(workerId)
  }

  async load(ids: readonly string[]) {
    return this.#redis.load(ids)
  }

  async renew(tokens: Tokens): Promise<void> {
    this.#redis.renew(tokens, RENEWED_LOCK_MS)
  }

  async requeueStalled(): Promise<void> {
    this.#redis.requeueStalled()
  }

  async requeue(tokens: Tokens, end: QueueEnd): Promise<void> {
    this.#redis.requeue(tokens, end)
  }

  async fail(id: string, token: string): Promise<void> {
    this.#redis.fail(id, token)
  }

  async claim(batchId: string, ids: readonly string[]) {
    return this.#redis.claim(batchId, ids)
  }

  async read(batchId: string): Promise<BatchRecord | undefined> {
    const record = this.#redis.read(batchId)
    if (record === undefined) return undefined
    const { state, members, splits, repairs } = record
    return { state, members, splits, repairs }
  }

  async beginRepair(batchId: string, workerId: string) {
    return this.#redis.beginRepair(batchId, workerId)
  }

  async recordSplit(batchId: string, range: string, repair: number) {
    try {
      return this.#redis.recordSplit(batchId, range, repair)
    } catch {
      return 'rejected'
    }
  }

  async renewLease(batchId: string, workerId: string): Promise<void> {
    this.#redis.renewLease(batchId, workerId)
  }

  async endLease(batchId: string, workerId: string): Promise<void> {
    this.#redis.endLease(batchId, workerId)
  }

  async finish(batch: StoredBatch, repair: number | undefined, tokens: Tokens): Promise<boolean> {
    return this.#redis.finish(batch, repair, tokens)
  }

  async counts() {
    const { jobs, failed, totals } = this.#redis
    return { jobs, failed, totals }
  }

  async pass(ms: number): Promise<void> {
    this.#time.nowMs += ms
  }
}

/** The code of `packages/queue` behind the operations, on a queue in a real Redis. It is closed at the end of the test. */
export class RealScripts implements QueueScripts {
  readonly #fixture: ConsumerFixture
  readonly #queue: ReturnType<typeof bullmqQueue>
  readonly #addScript: AddScript
  readonly #mover: JobMover
  readonly #fetchers = new Map<string, JobFetcher>()

  constructor(url: string) {
    this.#fixture = new ConsumerFixture(url)
    const { redis, names } = this.#fixture
    this.#queue = bullmqQueue(redis, names)
    onTestFinished(() => this.#queue.close())
    this.#mover = new JobMover(redis, names)
    this.#addScript = defineScript(redis, ADD_RECORDED)
  }

  async add(chunkId: string, chunk: Chunk, withinMs: number): Promise<'added' | 'late'> {
    const { redis, names } = this.#fixture
    const send = await prepareAdd(this.#addScript, this.#queue, names, { chunkId, chunk })
    const [seconds = 0] = await redis.time()
    const { isLate } = await send(seconds * 1_000 + withinMs)
    return isLate ? 'late' : 'added'
  }

  async fetch(...[workerId, count, isBusy]: Parameters<QueueScripts['fetch']>) {
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

  async yieldTurn(workerId: string): Promise<void> {
    await this.#fetchers.get(workerId)?.yieldTurn()
  }

  async load(ids: readonly string[]) {
    return this.#fixture.openConsumer().load(ids)
  }

  async renew(tokens: Tokens): Promise<void> {
    await this.#whileLocksRun(heldJobs(tokens), RENEWED_LOCK_MS, 2)
  }

  async requeueStalled(): Promise<void> {
    await this.#whileLocksRun(new HeldJobs(), STALLED_CHECK_MS, STALLED_CHECKS)
  }

  async requeue(tokens: Tokens, end: QueueEnd): Promise<void> {
    await this.#mover.requeue(
      [...tokens].map(([id, token]) => ({ id, token, bytes: 0 })),
      end,
    )
  }

  async fail(id: string, token: string): Promise<void> {
    await this.#mover.fail({ id, token }, new Error('a reason'))
  }

  async claim(batchId: string, ids: readonly string[]) {
    return this.#fixture.ledger.claim(batchId, ids)
  }

  async read(batchId: string): Promise<BatchRecord | undefined> {
    return this.#fixture.ledger.read(batchId)
  }

  async beginRepair(batchId: string, workerId: string) {
    return this.#fixture.ledger.beginRepair(batchId, workerId)
  }

  async recordSplit(batchId: string, range: string, repair: number) {
    try {
      return await this.#fixture.ledger.recordSplit(batchId, range, repair)
    } catch {
      return 'rejected'
    }
  }

  async renewLease(batchId: string, workerId: string): Promise<void> {
    await this.#fixture.ledger.renewLease(batchId, workerId)
  }

  async endLease(batchId: string, workerId: string): Promise<void> {
    await this.#fixture.ledger.endLease(batchId, workerId)
  }

  async finish(batch: StoredBatch, repair: number | undefined, tokens: Tokens): Promise<boolean> {
    const { redis, names } = this.#fixture
    return new BatchFinisher(plainRedis(redis), names, heldJobs(tokens)).finish(batch, repair)
  }

  async counts() {
    const { redis, names } = this.#fixture
    const { failed = 0, ...others } = await this.#fixture.counts()
    const totals = readRowTotals(await redis.hgetall(names.totalsKey))
    return { jobs: Object.values(others).reduce((sum, count) => sum + count, 0), failed, totals }
  }

  async pass(ms: number): Promise<void> {
    const { redis, names } = this.#fixture
    for (const key of await redis.keys(`${names.queuePrefix}:*`)) {
      const leftMs = await redis.pttl(key)
      // A negative answer stands for a key without a TTL.
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
