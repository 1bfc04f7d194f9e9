import { createRedisBackend, type Job, Worker } from 'bullmq'
import { onTestFinished } from 'vitest'
import type { Chunk } from '../../src/chunk.ts'
import { chunkOf, ConsumerFixture } from './consumer-fixture.ts'

export type ChunkJob = Job<Chunk, void>
export type ChunkWorker = Worker<Chunk, void>

/** The value of held-jobs.ts. */
export const STALLED_COUNT_MAX = 1_000_000_000
/** The token of our locks. */
export const TOKEN = 'our-token'

/** A queue with workers of BullMQ. */
export class BullmqFixture extends ConsumerFixture {
  /** The data of the jobs. */
  readonly chunk = chunkOf('row\n')

  /** A worker of BullMQ that fetches on request, and never blocks. */
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

  async exists(id: string): Promise<boolean> {
    return (await this.redis.exists(this.names.jobKey(id))) === 1
  }

  /** A job as Redis stores it. Its options are parsed, and fields that differ between jobs are left out. */
  async storedJob(id: string): Promise<unknown> {
    const { timestamp, opts = '{}', ...fields } = await this.redis.hgetall(this.names.jobKey(id))
    const { jobId, ...options } = JSON.parse(opts) as { jobId?: string }
    return { ...fields, options, hasTimestamp: Number(timestamp) > 0, hasItsId: jobId === id }
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
}
