import type { OpsAnswer, RedisConnection } from '@sluice/runtime'
import { type ChunkState, ChunkSummaries, type ChunkSummary } from './chunk-summaries.ts'
import { readProcesses } from './heartbeat.ts'
import type { QueueGauge, ShardReading } from './queue-gauge.ts'
import type { QueueNames } from './queue-names.ts'
import {
  type Overview,
  overviewPage,
  pageHeaders,
  type ShardOverview,
  shardPage,
  type ShardView,
} from './queue-page.ts'
import { queuedRows, readRowTotals, type RowTotals } from './row-totals.ts'
import type { ShardCount } from './shard-count.ts'

/** A person does not wait longer, whatever the timeout of the connection is. */
const DEADLINE_MS = 3_000
/** Requests that wait for Redis at a time: a browser that reloads while Redis is silent. Further ones get 503 at once. */
const REQUESTS_MAX = 4

export interface QueueViewOptions {
  readonly redis: RedisConnection
  readonly prefix: string
  readonly gauge: Pick<QueueGauge, 'read' | 'failureOf'>
  readonly shards: Pick<ShardCount, 'names'>
}

/**
 * Pages for operators about the queues and their chunks, which change nothing and contain no row: `/queues` and `/queues/N` for the shard
 * N, each with `.json` as JSON.
 */
export class QueueView {
  readonly #options: QueueViewOptions
  readonly #summaries: ChunkSummaries
  #reading = 0

  constructor(options: QueueViewOptions) {
    this.#options = options
    this.#summaries = new ChunkSummaries(options.redis)
  }

  /** @returns undefined for a path of another page; the promise never rejects */
  readonly answer = (path: string): Promise<OpsAnswer> | undefined => {
    const match = /^\/queues(?:\/(\d{1,2}))?(\.json)?$/.exec(path)
    if (match === null) return undefined
    const [, shard, json] = match
    return this.#answer(shard === undefined ? undefined : Number(shard), json !== undefined)
  }

  async #answer(shard: number | undefined, isJson: boolean): Promise<OpsAnswer> {
    const names = this.#options.shards.names.find((each) => each.shard === shard)
    if (shard !== undefined && names === undefined) return answerOf(404, { status: 'not found' })
    if (this.#reading >= REQUESTS_MAX) return unavailable
    this.#reading += 1
    const answer = names === undefined ? this.#page(isJson) : this.#shardPage(names, isJson)
    const { promise: isLate, resolve } = Promise.withResolvers<OpsAnswer>()
    const timer = setTimeout(() => resolve(unavailable), DEADLINE_MS)
    // Without the message of an error: Redis quotes arguments in some. The process logs what is wrong with Redis.
    const safe = answer.catch(() => unavailable).finally(() => (this.#reading -= 1))
    return Promise.race([safe, isLate]).finally(() => clearTimeout(timer))
  }

  async #page(isJson: boolean): Promise<OpsAnswer> {
    const overview = await this.#readOverview()
    return isJson ? answerOf(200, overview) : htmlOf(overviewPage(overview))
  }

  async #shardPage(names: QueueNames, isJson: boolean): Promise<OpsAnswer> {
    const view = await this.#readShard(names)
    return isJson ? answerOf(200, view) : htmlOf(shardPage(view))
  }

  /** While a node of a cluster is unavailable, what the others have is shown. */
  async #readOverview(): Promise<Overview> {
    const { redis, prefix, gauge, shards } = this.#options
    const { shards: readings, servers } = await gauge.read()
    const names = new Map(shards.names.map((each) => [each.shard, each]))
    const [overviews, processes] = await Promise.all([
      Promise.all(
        readings.map(async (reading) => {
          const its = names.get(reading.shard)
          const isCurrent = its !== undefined && gauge.failureOf(its) === undefined
          const totals = isCurrent ? await this.#totals(its) : undefined
          return overviewOf(reading, isCurrent, totals)
        }),
      ),
      readProcesses(redis, prefix).catch(() => undefined),
    ])
    return {
      shards: overviews,
      servers: servers.map(({ server, usedBytes, limitBytes }) => ({ server, usedBytes, limitBytes })),
      processes,
    }
  }

  async #totals({ totalsKey }: QueueNames): Promise<RowTotals | undefined> {
    return this.#options.redis.hgetall(totalsKey).then(readRowTotals, () => undefined)
  }

  async #readShard(names: QueueNames): Promise<ShardView> {
    const read = (state: ChunkState): Promise<ChunkSummary[]> => this.#summaries.read(names, state)
    const [failed, inHand, waiting, delayed] = await Promise.all([
      read('failed'),
      read('inHand'),
      read('waiting'),
      read('delayed'),
    ])
    return { shard: names.shard, chunks: { failed, inHand, waiting, delayed } }
  }
}

function overviewOf(reading: ShardReading, isCurrent: boolean, totals: RowTotals | undefined): ShardOverview {
  return { ...reading, isCurrent, rows: totals && queuedRows(totals), totals }
}

const htmlOf = (body: string): OpsAnswer => ({ status: 200, headers: pageHeaders, body })

function answerOf(status: number, value: unknown): OpsAnswer {
  return {
    status,
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    },
    body: JSON.stringify(value),
  }
}

const unavailable = answerOf(503, { status: 'the queues cannot be read at the moment' })
