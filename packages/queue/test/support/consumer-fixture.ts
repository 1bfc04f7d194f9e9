import { closeRedis } from '@sluice/harness/close-redis'
import { startRedis, Supervisor } from '@sluice/local'
import { packBlocks } from '@sluice/rows'
import { namedRows } from '@sluice/rows/testing'
import { connectRedis, createLogger, plainRedis, type RedisConnection } from '@sluice/runtime'
import type { JobsOptions, Queue } from 'bullmq'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, type MockInstance, onTestFinished, vi } from 'vitest'
import { batchLedger, type BatchLedger } from '../../src/batch-ledger.ts'
import { bullmqQueue } from '../../src/bullmq-internals.ts'
import { type ChunkData, encodeChunk, FRAME_FIELD, type NewChunk } from '../../src/chunk.ts'
import {
  chunkConsumer,
  type ChunkConsumer,
  type ChunkConsumerOptions,
  type Fetch,
} from '../../src/chunk-consumer.ts'
import { ChunkQueue } from '../../src/chunk-queue.ts'
import { FetchMonitor } from '../../src/fetch-monitor.ts'
import { chunkJobName, type QueueNames, queueNames } from '../../src/queue-names.ts'

/** A limit for waiting on something that happens within milliseconds on an idle machine. */
export const WAIT_MS = 10_000

/**
 * Starts a Redis for the tests of a file, which change its configuration or read its statistics, and stops it after them. The URL may be
 * read when the tests run.
 */
export function useTestRedis(): { readonly url: string } {
  let supervisor: Supervisor
  let url = ''
  beforeAll(async () => {
    supervisor = new Supervisor()
    ;({ url } = await startRedis(supervisor))
  })
  afterAll(() => supervisor.stop({ force: true }))
  return {
    get url() {
      return url
    },
  }
}

/** A queue that no other test uses, with its consumers, and what Redis stores of it. All is closed at the end of the test. */
export class ConsumerFixture {
  readonly names: QueueNames
  readonly redis: RedisConnection
  /** Reads the queue. */
  readonly queue: Queue<ChunkData>
  readonly ledger: BatchLedger
  readonly fetchMonitor = new FetchMonitor(() => performance.now())
  readonly #logger = createLogger('test', 'silent')
  /** The warnings and errors that the consumers logged. */
  readonly warnings: MockInstance = vi.spyOn(this.#logger, 'warn')
  readonly errors: MockInstance = vi.spyOn(this.#logger, 'error')

  /** @param url a Redis. The test adds and reads through a separate connection, so the connection of a consumer may fail. */
  constructor(url: string, names = queueNames(`test-${randomUUID()}`)) {
    this.names = names
    this.redis = connectRedis(url, { failFast: false })
    this.redis.on('error', () => undefined)
    onTestFinished(() => closeRedis(this.redis))
    this.queue = this.openQueue()
    this.ledger = batchLedger(plainRedis(this.redis), this.names)
  }

  /** The queue of a shard, with the options of the producer. */
  openQueue(names = this.names): Queue<ChunkData> {
    const queue = bullmqQueue(this.redis, names)
    onTestFinished(() => queue.close())
    return queue
  }

  openChunkQueue(): ChunkQueue {
    const chunkQueue = new ChunkQueue(this.redis, this.names)
    onTestFinished(() => chunkQueue.close())
    return chunkQueue
  }

  /** Persists that ranges of a batch are split, in one repair. @returns whether each was persisted */
  async split(batchId: string, ranges: readonly string[]): Promise<boolean[]> {
    const repair = await this.ledger.beginRepair(batchId, 'a-worker')
    return Promise.all(ranges.map((range) => this.ledger.recordSplit(batchId, range, repair?.number ?? -1)))
  }

  /** A worker's consumer. Several consumers are several workers. */
  openConsumer(options?: Partial<ChunkConsumerOptions>): ChunkConsumer {
    const { redis, names, fetchMonitor } = this
    const consumer = chunkConsumer({
      redis,
      names,
      workerId: randomUUID(),
      lockDurationMs: 30_000,
      logger: this.#logger,
      fetchMonitor,
      ...options,
    })
    onTestFinished(() => consumer.close())
    return consumer
  }

  /**
   * Adds a chunk by `queue.add`, and then its frame, unless the job has one. No consumer may fetch meanwhile. Unlike `ChunkQueue`, it
   * leaves it to BullMQ whether the job is added again, and counts no rows.
   */
  async add(chunkId: string, chunk = chunkOf('row'), options?: JobsOptions): Promise<void> {
    const { frame, receivedMs: _receivedMs, ...data } = chunk
    await this.queue.add(chunkJobName, data, { ...options, jobId: chunkId })
    await this.redis.hsetnx(this.names.jobKey(chunkId), FRAME_FIELD, frame)
  }

  /** Adds chunks. @returns their ids */
  async addMany(count: number): Promise<string[]> {
    const ids = Array.from({ length: count }, (_, n) => `chunk-${n}`)
    for (const id of ids) await this.add(id)
    return ids
  }

  /** The number of jobs in each state, without the states that have none. */
  async counts(): Promise<Record<string, number>> {
    const counts = await this.queue.getJobCounts('waiting', 'active', 'delayed', 'failed', 'completed')
    return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
  }

  /** The ids of the waiting jobs. The first one is the next to be fetched. */
  async waiting(): Promise<string[]> {
    return (await this.redis.lrange(this.names.waitKey, 0, -1)).toReversed()
  }

  lockKey(chunkId: string): string {
    return `${this.names.jobKey(chunkId)}:lock`
  }

  /** Every key of the queue and of the records next to it, with its content. */
  async content(): Promise<Record<string, string | undefined>> {
    const keys = (await this.redis.keys(`${this.names.queuePrefix}:*`)).toSorted((a, b) => a.localeCompare(b))
    const dumps = await Promise.all(keys.map((key) => this.redis.dumpBuffer(key)))
    return Object.fromEntries(keys.map((key, i) => [key, dumps[i]?.toString('hex')]))
  }

  /** Runs something while Redis has another setting. */
  async whileConfigured<T>(name: string, value: string, run: () => Promise<T>): Promise<T> {
    const [, before = ''] = await this.redis.config('GET', name)
    await this.redis.config('SET', name, value)
    try {
      return await run()
    } finally {
      await this.redis.config('SET', name, before)
    }
  }

  /** Runs something while Redis is above its `maxmemory`. */
  async whileFull<T>(run: () => Promise<T>): Promise<T> {
    return this.whileConfigured('maxmemory', '1', run)
  }

  /** How many scripts Redis has run, except for scripts whose source was sent. */
  scriptRuns(): Promise<number> {
    return this.statistic('commandstats', 'cmdstat_evalsha:calls')
  }

  /** A number in a section of INFO. */
  async statistic(section: string, name: string): Promise<number> {
    return Number(new RegExp(`${name}\\D+(\\d+)`).exec(await this.redis.info(section))?.[1] ?? 0)
  }
}

/** Fetches as a worker that is not busy. @throws if another worker has the turn */
export async function fetchMine(consumer: ChunkConsumer, count: number): Promise<Fetch> {
  const fetch = await consumer.fetch(count, { isBusy: false })
  if (fetch === undefined) throw new Error('another worker has the turn')
  return fetch
}

/** The ids of the chunks that a fetch returns. */
export async function fetchIds(consumer: ChunkConsumer, count: number): Promise<string[]> {
  return (await fetchMine(consumer, count)).chunks.map(({ id }) => id)
}

/** A chunk of one row. */
export function chunkOf(row: string): NewChunk {
  return encodeChunk(packBlocks(namedRows(row)))
}
