// Measures what the queue costs Redis: the CPU time of its main thread per chunk, and at rest.
import { CommandLine } from '@sluice/harness/command-line'
import { startRedis, Supervisor } from '@sluice/local'
import {
  BatchLedger,
  type Chunk,
  ChunkConsumer,
  ChunkQueue,
  encodeChunk,
  FetchMonitor,
  queueNames,
  type QueueNames,
  shardNames,
} from '@sluice/queue'
import { connectRedis, createLogger, type RedisConnection } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { type RedisUsage, redisUsageOf } from './measure/redis-usage.ts'
import { readPositive } from './options.ts'

const commandLine = new CommandLine(`node bench/src/queue-cost-main.ts [options]

  --seconds N   length of each measurement; default 10
  --rate N      chunks per second of the first measurement; default 400
  --workers N   workers at rest; default 50
  --shards N    shards at rest; default 16
  --help        prints this text
`)
const values = commandLine.read({
  seconds: { type: 'string', default: '10' },
  rate: { type: 'string', default: '400' },
  workers: { type: 'string', default: '50' },
  shards: { type: 'string', default: '16' },
})
const windowMs = readPositive(commandLine, '--seconds', values.seconds) * 1_000
const rate = readPositive(commandLine, '--rate', values.rate)
const workers = readPositive(commandLine, '--workers', values.workers)
const shards = readPositive(commandLine, '--shards', values.shards)

/** As the worker: time between fetches while chunks arrive, and while none arrive; between those of a worker without the turn. */
const FETCH_INTERVAL_MS = 20
const IDLE_INTERVAL_MS = 100
const TAKEN_INTERVAL_MS = 1_000
const BATCH_WAIT_MS = 500
/** Adds in flight at full speed, as of several API processes. */
const ADDS_IN_FLIGHT = 32
/** Chunks of the measurement by operation. */
const SPLIT_CHUNKS = 4_096
const BATCH_CHUNKS = 64
const ADD_DEADLINE_MS = 30_000
const LOCK_DURATION_MS = 30_000
const ROWS = 5
/** Commands that take less are not listed. */
const SHOWN_MIN_US = 0.05

const logger = createLogger('bench', 'silent')
const row =
  'project-1\t2026-11-22 12:00:00.000\t2026-12-23\t{}\terror\tapi\tThe request failed after 3 attempts\n'
const chunk: Chunk = encodeChunk(ROWS, Buffer.from(row.repeat(ROWS)))

const supervisor = await Supervisor.open()
const { url } = await startRedis(supervisor)

async function connect(failFast: boolean): Promise<RedisConnection> {
  const redis = connectRedis(url, failFast ? { failFast, commandTimeoutMs: 5_000 } : { failFast })
  await once(redis, 'ready')
  return redis
}

const line = (name: string, cells: readonly (string | number)[]): void =>
  console.log(`  ${name.padEnd(28)}${cells.map((cell) => String(cell).padStart(12)).join('')}`)

const per = (total: number, count: number): string => (total / count).toFixed(1)

function openConsumer(redis: RedisConnection, names: QueueNames, workerId: string): ChunkConsumer {
  const fetchMonitor = new FetchMonitor(() => performance.now())
  return new ChunkConsumer({ redis, names, workerId, lockDurationMs: LOCK_DURATION_MS, logger, fetchMonitor })
}

/** A queue with a producer and a worker. */
class Shard {
  readonly names = queueNames(`bench-${randomUUID()}`)
  readonly #workerRedis: RedisConnection
  readonly #apiRedis: RedisConnection
  readonly ledger: BatchLedger
  readonly queue: ChunkQueue
  readonly consumer: ChunkConsumer

  private constructor(apiRedis: RedisConnection, workerRedis: RedisConnection) {
    this.#apiRedis = apiRedis
    this.#workerRedis = workerRedis
    this.ledger = new BatchLedger(workerRedis, this.names)
    this.queue = new ChunkQueue(apiRedis, this.names, logger)
    this.consumer = openConsumer(workerRedis, this.names, randomUUID())
  }

  static async open(): Promise<Shard> {
    const shard = new Shard(await connect(true), await connect(false))
    await shard.add(1)
    await shard.deliver((await shard.fetch(1)).ids)
    return shard
  }

  async add(count: number): Promise<void> {
    let left = count
    await Promise.all(
      Array.from({ length: ADDS_IN_FLIGHT }, async () => {
        for (; left > 0;) {
          left -= 1
          await this.addOne()
        }
      }),
    )
  }

  addOne(): Promise<void> {
    return this.queue.add(randomUUID(), chunk, performance.now() + ADD_DEADLINE_MS)
  }

  async fetch(count: number): Promise<{ readonly ids: string[]; readonly hasMore: boolean }> {
    const fetch = await this.consumer.fetch(count, { isBusy: false })
    return fetch.turn === 'taken'
      ? { ids: [], hasMore: false }
      : { ids: fetch.chunks.map(({ id }) => id), hasMore: fetch.hasMore }
  }

  async deliver(members: readonly string[]): Promise<void> {
    const id = randomUUID()
    await this.ledger.claim(id, members)
    await this.consumer.finish({ id, members }, 0)
  }

  async close(): Promise<void> {
    await this.consumer.close()
    await this.queue.close()
    this.#workerRedis.disconnect()
    this.#apiRedis.disconnect()
  }
}

/** Collects and delivers as a worker, until the signal. Resolves to the number of chunks. */
async function work(shard: Shard, waitMs: number, signal: AbortSignal): Promise<number> {
  let delivered = 0
  let collected: string[] = []
  let dueAtMs = Infinity
  for (;;) {
    const { ids, hasMore } = await shard.fetch(BATCH_CHUNKS)
    if (ids.length > 0 && collected.length === 0) dueAtMs = performance.now() + waitMs
    collected.push(...ids)
    if (performance.now() >= dueAtMs || collected.length >= 16 * BATCH_CHUNKS) {
      await shard.deliver(collected)
      delivered += collected.length
      collected = []
      dueAtMs = Infinity
    }
    if (signal.aborted && collected.length === 0 && ids.length === 0) return delivered
    if (!hasMore) await delay(ids.length > 0 ? FETCH_INTERVAL_MS : IDLE_INTERVAL_MS)
  }
}

/** Starts an operation in equal intervals. Resolves to their number when all have ended. */
async function runAtRate(run: () => Promise<unknown>, signal: AbortSignal): Promise<number> {
  const startedMs = performance.now()
  const started: Promise<unknown>[] = []
  while (!signal.aborted) {
    const waitMs = startedMs + (started.length * 1_000) / rate - performance.now()
    if (waitMs > 0) await delay(waitMs)
    started.push(run())
  }
  await Promise.all(started)
  return started.length
}

function printLoad(what: string, { userUs, systemUs, ms }: RedisUsage, count: number): void {
  line(what, [
    Math.round((count * 1_000) / ms),
    per(userUs + systemUs, count),
    per(userUs, count),
    per(systemUs, count),
  ])
}

/** What the same number of single writes costs, and that of adds without a worker. */
async function measureReferences(): Promise<void> {
  const [shard, redis] = [await Shard.open(), await connect(false)]
  const runs: Readonly<Record<string, () => Promise<unknown>>> = {
    'SET, for comparison': () => redis.set(shard.names.chunkKey('none'), chunk.frame),
    'add alone': () => shard.addOne(),
  }
  for (const [name, run] of Object.entries(runs)) {
    let count = 0
    const usage = await redisUsageOf(url, async () => {
      count = await runAtRate(run, AbortSignal.timeout(windowMs))
    })
    printLoad(`${name}, at ${rate}/s`, usage, count)
  }
  redis.disconnect()
  await shard.close()
}

/** Adds until the signal. */
type AddAll = (shard: Shard, signal: AbortSignal) => Promise<unknown>

const addAtRate: AddAll = (shard, signal) => runAtRate(() => shard.addOne(), signal)

const addAtFullSpeed: AddAll = async (shard, signal) => {
  while (!signal.aborted) await shard.add(ADDS_IN_FLIGHT)
}

async function measureLoad(
  what: string,
  addAll: AddAll,
  waitMs: number,
): Promise<{ readonly usage: RedisUsage; readonly chunks: number }> {
  const shard = await Shard.open()
  let chunks = 0
  const usage = await redisUsageOf(url, async () => {
    const stopping = new AbortController()
    const worker = work(shard, waitMs, stopping.signal)
    await addAll(shard, AbortSignal.timeout(windowMs))
    stopping.abort()
    chunks = await worker
  })
  await shard.close()
  printLoad(what, usage, chunks)
  return { usage, chunks }
}

function printCommands({ usage, chunks }: { readonly usage: RedisUsage; readonly chunks: number }): void {
  console.log(
    '\nCommands at full speed, those in scripts included (the time of a script includes that of its commands)',
  )
  line('', ['calls/chunk', 'µs/chunk'])
  for (const [name, { calls, us }] of [...usage.commands].toSorted(([, a], [, b]) => b.us - a.us))
    if (us / chunks >= SHOWN_MIN_US) line(name, [(calls / chunks).toFixed(2), (us / chunks).toFixed(2)])
}

/** Each operation by itself, one after the other. */
async function measureOperations(): Promise<void> {
  const shard = await Shard.open()
  const ids: string[] = []
  const batches: string[][] = []
  const batchIds: string[] = []
  const operations: Readonly<Record<string, () => Promise<void>>> = {
    add: () => shard.add(SPLIT_CHUNKS),
    fetch: async () => {
      while (ids.length < SPLIT_CHUNKS) ids.push(...(await shard.fetch(BATCH_CHUNKS)).ids)
      for (let from = 0; from < ids.length; from += BATCH_CHUNKS) {
        batches.push(ids.slice(from, from + BATCH_CHUNKS))
        batchIds.push(randomUUID())
      }
    },
    claim: async () => {
      for (const [i, members] of batches.entries()) await shard.ledger.claim(batchIds[i] ?? '', members)
    },
    finish: async () => {
      for (const [i, members] of batches.entries())
        await shard.consumer.finish({ id: batchIds[i] ?? '', members }, 0)
    },
  }
  for (const [name, run] of Object.entries(operations)) {
    const { userUs, systemUs, commands } = await redisUsageOf(url, run)
    const script = (commands.get('evalsha')?.us ?? 0) + (commands.get('eval')?.us ?? 0)
    line(name, [
      per(userUs + systemUs, SPLIT_CHUNKS),
      per(userUs, SPLIT_CHUNKS),
      per(systemUs, SPLIT_CHUNKS),
      per(script, SPLIT_CHUNKS),
    ])
  }
  await shard.close()
}

/** Workers that have nothing to do. One of them has the turn of each shard. */
async function measureRest(): Promise<void> {
  const names = shardNames(`bench-${randomUUID()}`, shards)
  const resting = await Promise.all(
    Array.from({ length: workers }, async () => {
      const redis = await connect(false)
      const workerId = randomUUID()
      return { redis, consumers: names.map((shard) => openConsumer(redis, shard, workerId)) }
    }),
  )
  const stopping = new AbortController()
  const poll = async (consumers: readonly ChunkConsumer[]): Promise<void> => {
    while (!stopping.signal.aborted) {
      const fetches = await Promise.all(
        consumers.map((consumer) => consumer.fetch(BATCH_CHUNKS, { isBusy: false })),
      )
      const hasTurn = fetches.some(({ turn }) => turn === 'mine')
      await delay(hasTurn ? IDLE_INTERVAL_MS : TAKEN_INTERVAL_MS)
    }
  }
  const [first, ...others] = resting
  if (first === undefined) return
  const holder = poll(first.consumers)
  await delay(IDLE_INTERVAL_MS)
  const polls = [
    holder,
    ...others.map(async ({ consumers }, i) => {
      await delay((i * TAKEN_INTERVAL_MS) / others.length)
      await poll(consumers)
    }),
  ]
  await delay(TAKEN_INTERVAL_MS)
  const { userUs, systemUs, commands, ms } = await redisUsageOf(url, () => delay(windowMs))
  stopping.abort()
  await Promise.all(polls)
  await Promise.all(
    resting.map(async ({ redis, consumers }) => {
      await Promise.all(consumers.map((consumer) => consumer.close()))
      redis.disconnect()
    }),
  )
  // Each fetch reads the turn once.
  const fetches = commands.get('get')?.calls ?? 0
  line(`${workers} workers × ${shards} shards`, [
    Math.round((fetches * 1_000) / ms),
    per((userUs + systemUs) * 100, ms * 1_000),
    per(userUs + systemUs, fetches),
  ])
}

try {
  console.log(
    `appendfsync always. CPU time of the main thread. Chunks of ${ROWS} rows, ${chunk.frame.length} bytes of base64`,
  )
  console.log('\nBy operation, µs per chunk')
  line('', ['total', 'user', 'system', 'in script'])
  await measureOperations()
  console.log('\nAdd, fetch, claim and finish, with the polls of one worker, µs per chunk')
  line('', ['chunks/s', 'total', 'user', 'system'])
  await measureReferences()
  await measureLoad(`at ${rate} chunks/s`, addAtRate, BATCH_WAIT_MS)
  const fullSpeed = await measureLoad('at full speed', addAtFullSpeed, 0)
  console.log('\nAt rest')
  line('', ['fetches/s', '% of a core', 'µs/fetch'])
  await measureRest()
  printCommands(fullSpeed)
} finally {
  await supervisor.stop({ force: true })
}
