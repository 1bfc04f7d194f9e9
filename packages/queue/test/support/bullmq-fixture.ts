import { closeRedis, connectRedis, type RedisConnection } from '@sluice/runtime'
import { createRedisBackend, type Job, Queue, Worker } from 'bullmq'
import { randomUUID } from 'node:crypto'
import { onTestFinished } from 'vitest'
import type { Chunk } from '../../src/chunk.ts'
import { chunkJobName, type QueueNames, queueNames } from '../../src/queue-names.ts'
import { chunkOf } from './consumer-fixture.ts'

export type ChunkJob = Job<Chunk, void>
export type ChunkWorker = Worker<Chunk, void>

/** The value of job-locks.ts. */
export const STALLED_COUNT_MAX = 1_000_000_000
/** The token of our locks. */
export const TOKEN = 'our-token'

/** A queue of BullMQ that no other test uses, and what Redis stores of it. All is closed at the end of the test. */
export class BullmqFixture {
  readonly names: QueueNames = queueNames(`test-${randomUUID()}`)
  /** The data of the jobs. */
  readonly chunk = chunkOf('row\n')
  readonly redis: RedisConnection
  readonly queue: Queue<Chunk>

  constructor(url: string) {
    this.redis = connectRedis(url, { failFast: false })
    onTestFinished(() => closeRedis(this.redis))
    this.queue = this.openQueue()
  }

  /** A queue with the options of chunk-queue.ts. */
  openQueue({ queue: name, queuePrefix: prefix }: QueueNames = this.names): Queue<Chunk> {
    const queue = new Queue<Chunk>(name, {
      connection: this.redis,
      prefix,
      streams: { events: { maxLen: 1 } },
      defaultJobOptions: { attempts: 1, removeOnComplete: true, removeOnFail: false },
    })
    onTestFinished(() => queue.close())
    return queue
  }

  /** A worker as in earlier versions of Sluice: it fetches on request, and never blocks. */
  openWorker(
    options: { readonly lockDuration?: number; readonly stalledInterval?: number } = {},
  ): ChunkWorker {
    const worker: ChunkWorker = new Worker<Chunk, void>(
      this.names.queue,
      null,
      {
        connection: this.redis,
        prefix: this.names.queuePrefix,
        autorun: false,
        maxStalledCount: STALLED_COUNT_MAX,
        ...options,
      },
      (name, queueOptions) => createRedisBackend(name, queueOptions),
    )
    onTestFinished(() => worker.close())
    return worker
  }

  async add(...ids: readonly string[]): Promise<void> {
    for (const id of ids) await this.queue.add(chunkJobName, this.chunk, { jobId: id })
  }

  async fetch(worker: ChunkWorker, token = TOKEN): Promise<ChunkJob | undefined> {
    return worker.getNextJob(token, { block: false })
  }

  /** Adds a job, and fetches it. */
  async addAndFetch(id: string, worker: ChunkWorker): Promise<ChunkJob> {
    await this.add(id)
    const job = await this.fetch(worker)
    if (job?.id !== id) throw new Error(`fetched ${job?.id} instead of ${id}`)
    return job
  }

  lockKey(id: string): string {
    return `${this.names.jobKey(id)}:lock`
  }

  async exists(id: string): Promise<boolean> {
    return (await this.redis.exists(this.names.jobKey(id))) === 1
  }

  /** The ids of the waiting jobs, newest first. */
  waiting(): Promise<string[]> {
    return this.redis.lrange(this.names.waitKey, 0, -1)
  }

  /** The number of jobs in each state, without the states that have none. */
  async counts(): Promise<Record<string, number>> {
    const counts = await this.queue.getJobCounts('waiting', 'active', 'delayed', 'failed', 'completed')
    return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
  }

  /** A job as Redis stores it. Its options are parsed, and fields that differ between jobs are left out. */
  async storedJob(id: string): Promise<unknown> {
    const { timestamp, opts = '{}', ...fields } = await this.redis.hgetall(this.names.jobKey(id))
    const { jobId, ...options } = JSON.parse(opts) as { jobId?: string }
    return { ...fields, options, hasTimestamp: Number(timestamp) > 0, hasItsId: jobId === id }
  }

  /** Every key of the queue and of the records next to it, with its content. */
  async content(): Promise<Record<string, string | undefined>> {
    const keys = (await this.redis.keys(`${this.names.queuePrefix}:*`)).toSorted((a, b) => a.localeCompare(b))
    const dumps = await Promise.all(keys.map((key) => this.redis.dumpBuffer(key)))
    return Object.fromEntries(keys.map((key, i) => [key, dumps[i]?.toString('hex')]))
  }

  /** Runs an operation that must fail. @returns its error, and whether the content is the same as before */
  async failure(
    operation: () => Promise<unknown>,
  ): Promise<{ readonly error: unknown; readonly isUnchanged: boolean }> {
    const before = await this.content()
    const error = await operation().then(
      () => undefined,
      (reason: unknown) => reason,
    )
    return { error, isUnchanged: JSON.stringify(await this.content()) === JSON.stringify(before) }
  }

  /** Runs something while Redis is out of memory. */
  async whileFull<T>(run: () => Promise<T>): Promise<T> {
    await this.redis.config('SET', 'maxmemory', '1')
    try {
      return await run()
    } finally {
      await this.redis.config('SET', 'maxmemory', '0')
    }
  }
}
