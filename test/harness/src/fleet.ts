import { migrate, migrationsFolder, readMigrations } from '@sluice/clickhouse'
import { type App, type Services, startWorker } from '@sluice/local'
import { ChunkQueue, encodeChunk, type QueueNames, shardNames } from '@sluice/queue'
import { packBlocks } from '@sluice/rows'
import { encodeBlock, rowOf, textPrefix } from '@sluice/rows/testing'
import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { randomUUIDv7 } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { ClickHouseGate } from './clickhouse-gate.ts'
import type { Journal } from './journal.ts'
import { settle, type Settlement } from './settle.ts'
import { startTestServices } from './test-installation.ts'
import { pause } from './waiting.ts'

export interface FleetOptions {
  readonly shards?: number
  readonly environment?: Readonly<Record<string, string>>
}

export interface FleetWorkerOptions {
  /** Default: the fleet's gate. */
  readonly clickhouseUrl?: string | undefined
  /** Settings in which it differs from the fleet. */
  readonly environment?: Readonly<Record<string, string>>
  /** See `AppOptions`. */
  readonly until?: 'alive' | 'ready'
}

export interface Feed {
  readonly chunksPerS: number
  readonly rowsPerChunk: number
  readonly durationMs: number
}

const PREFIX = 'fleet'
const ADD_DEADLINE_MS = 10_000
/** Adds in flight. Redis syncs its disk once for all commands that have arrived. */
const ADDS_IN_FLIGHT_MAX = 64
const FEED_TICK_MS = 20

/**
 * Many workers on one Redis and one ClickHouse, without an API: chunks are added to the queue as the API would add them. Between the workers and
 * ClickHouse is a gate.
 */
export class Fleet {
  readonly services: Services
  readonly gate: ClickHouseGate
  readonly names: readonly QueueNames[]
  readonly redis: RedisConnection
  readonly workers: App[] = []
  readonly #environment: Readonly<Record<string, string>>
  readonly #queues: readonly ChunkQueue[]
  readonly #feeding = new Set<Promise<void>>()
  #added = 0
  #isStopping = false

  private constructor(services: Services, gate: ClickHouseGate, options: FleetOptions) {
    const { shards = 1, environment = {} } = options
    this.services = services
    this.gate = gate
    this.names = shardNames(PREFIX, shards)
    this.#environment = { QUEUE_SHARDS: String(shards), ...environment }
    this.redis = connectRedis(services.redisUrl, { failFast: false })
    this.redis.on('error', () => undefined)
    this.#queues = this.names.map((names) => new ChunkQueue(this.redis, names))
  }

  static async start(options: FleetOptions = {}): Promise<Fleet> {
    const services = await startTestServices()
    try {
      await migrate(services.clickhouse, await readMigrations(migrationsFolder))
      return new Fleet(services, await ClickHouseGate.open(services.clickhouse.url), options)
    } catch (error) {
      await services.stop({ force: true })
      throw error
    }
  }

  async startWorker({
    clickhouseUrl = this.gate.url,
    environment,
    until = 'ready',
  }: FleetWorkerOptions = {}): Promise<App> {
    const { supervisor, redisUrl, clickhouse } = this.services
    const worker = await startWorker(supervisor, {
      redisUrl,
      prefix: PREFIX,
      name: `worker-${this.workers.length + 1}`,
      clickhouse: { ...clickhouse, url: clickhouseUrl },
      environment: { ...this.#environment, ...environment },
      until,
    })
    this.workers.push(worker)
    return worker
  }

  /** Adds chunks with entries of the journal, to one shard after another. */
  async add(journal: Journal, chunks: number, rowsPerChunk: number): Promise<void> {
    let left = chunks
    const addNext = async (): Promise<void> => {
      while (left > 0) {
        left -= 1
        await this.#addChunk(journal, rowsPerChunk)
      }
    }
    await Promise.all(Array.from({ length: ADDS_IN_FLIGHT_MAX }, addNext))
  }

  /** Adds chunks at a constant rate, unless the fleet is stopped. */
  feed(journal: Journal, feed: Feed): Promise<void> {
    const feeding = this.#feed(journal, feed).finally(() => this.#feeding.delete(feeding))
    this.#feeding.add(feeding)
    return feeding
  }

  async #feed(journal: Journal, { chunksPerS, rowsPerChunk, durationMs }: Feed): Promise<void> {
    const startedMs = performance.now()
    const total = Math.round((chunksPerS * durationMs) / 1_000)
    for (let added = 0; added < total && !this.#isStopping;) {
      const due = Math.min(total, Math.floor(((performance.now() - startedMs) * chunksPerS) / 1_000))
      await this.add(journal, due - added, rowsPerChunk)
      added = due
      await pause(FEED_TICK_MS)
    }
  }

  /** The chunks that wait for a worker, and those that workers hold, of all shards. */
  async queued(): Promise<{ waiting: number; active: number }> {
    const count = async (key: 'waitKey' | 'activeKey'): Promise<number> => {
      const lengths = await Promise.all(this.names.map((names) => this.redis.llen(names[key])))
      return lengths.reduce((sum, length) => sum + length, 0)
    }
    const [waiting, active] = await Promise.all([count('waitKey'), count('activeKey')])
    return { waiting, active }
  }

  /** Waits until the queues are empty, stops the workers, and compares the journal with what is stored. */
  async settle(journal: Journal): Promise<Settlement> {
    const drained = (): Promise<unknown> => Promise.all(this.workers.map(({ process }) => process.stop()))
    return settle({ ...this.services, shards: this.names }, journal, { drained })
  }

  /** The lines with this message that all workers have logged. */
  logged(message: string): Record<string, unknown>[] {
    return this.workers
      .flatMap(({ process }) => readFileSync(process.logFile, 'utf8').split('\n'))
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ msg }) => msg === message)
  }

  /** Kills all processes. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await Promise.all(this.#feeding)
    await Promise.all(this.#queues.map((queue) => queue.close()))
    this.redis.disconnect()
    await this.services.stop({ force: true })
    await this.gate.close()
  }

  async #addChunk(journal: Journal, rows: number): Promise<void> {
    const queue = this.#queues[this.#added % this.#queues.length]
    this.#added += 1
    const numbers = journal.open(rows)
    const texts = numbers.map((number) => makeRow(journal.message(number)))
    const chunk = encodeChunk(packBlocks(encodeBlock(texts)))
    await queue?.add(randomUUIDv7(), chunk, performance.now() + ADD_DEADLINE_MS)
    journal.settle(numbers, 'acknowledged')
  }
}

function makeRow(message: string): string {
  const prefix = textPrefix({ projectId: 'fleet', retentionDays: 30, receivedAtMs: Date.now() })
  return rowOf({ level: 'info', message }, randomUUIDv7(), prefix)
}
