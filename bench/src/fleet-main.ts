// Measures the chunks that many API processes make with few requests each. A process would need more than this machine has, so each
// is represented by its writer, with a separate connection to Redis. A worker stores the rows.
import { ChunkWriter } from '@sluice/api/chunk-writer'
import { CommandLine } from '@sluice/harness/command-line'
import { seededRandom } from '@sluice/harness/random'
import { type Installation, startInstallation } from '@sluice/local'
import { ChunkQueue, queueNames, ShardedQueue } from '@sluice/queue'
import { ownedRows } from '@sluice/row-scanner'
import { makeRowPrefix, shapeRow } from '@sluice/rows'
import { connectRedis, createLogger, type RedisConnection } from '@sluice/runtime'
import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { exponential } from './entries/distributions.ts'
import { DurationHistogram } from './measure/duration-histogram.ts'
import { ProcessMeter } from './measure/process-meter.ts'
import { redisCounter } from './measure/redis-info.ts'
import { readPositive } from './options.ts'
import { pidsOf } from './systems/system.ts'

const commandLine = new CommandLine(`node bench/src/fleet-main.ts [options]

  --writers N   default 24
  --rates LIST  requests of one row per second and writer, comma-separated; default 20,50,100,200,500
  --seconds N   length of each measurement; default 6
  --unpaced     ignores the rate at which all writers add
  --help        prints this text
`)
const values = commandLine.read({
  writers: { type: 'string', default: '24' },
  rates: { type: 'string', default: '20,50,100,200,500' },
  seconds: { type: 'string', default: '6' },
  unpaced: { type: 'boolean', default: false },
})
const writersCount = readPositive(commandLine, '--writers', values.writers)
const rates = values.rates.split(',').map((rate) => readPositive(commandLine, '--rates', rate))
const windowMs = readPositive(commandLine, '--seconds', values.seconds) * 1_000

/** By then the pace has settled. */
const WARM_UP_MS = 3_000
/** Timers have no finer resolution. */
const TICK_MS = 1
const COMMAND_TIMEOUT_MS = 1_800
const CONNECT_MS = 1_000
const MESSAGE_BYTES = 250
const SEED = 1

interface Writer {
  readonly redis: RedisConnection
  readonly chunks: ChunkWriter
}

const random = seededRandom(SEED)
const installation = await startInstallation()
const names = queueNames(installation.prefix)
try {
  const writers = Array.from({ length: writersCount }, () => openWriter(installation))
  await delay(CONNECT_MS)
  console.log('requests/s  chunks/s  rows/chunk  ack p50 ms  p99 ms  cores: Redis  worker  writers')
  for (const rate of rates) {
    await load(writers, rate, WARM_UP_MS)
    console.log(await measure(writers, rate))
  }
} finally {
  await installation.stop()
}
process.exit()

function openWriter({ redisUrl }: Installation): Writer {
  const redis = connectRedis(redisUrl, { failFast: true, commandTimeoutMs: COMMAND_TIMEOUT_MS })
  const queue = new ShardedQueue([new ChunkQueue(redis, names, createLogger('fleet', 'silent'))])
  const unpaced = {
    addsPerS: 0,
    add: (...add: Parameters<ShardedQueue['add']>) => queue.add(...add),
  }
  return { redis, chunks: new ChunkWriter(values.unpaced ? unpaced : queue, randomUUIDv7) }
}

async function measure(writers: readonly Writer[], rate: number): Promise<string> {
  const { redisUrl, processes } = installation
  const counter = names.jobKey('id')
  const before = await redisCounter(redisUrl, counter)
  const meter = new ProcessMeter(pidsOf(processes))
  const own = process.cpuUsage()
  const startedMs = performance.now()
  const { requests, latency } = await load(writers, rate, windowMs)
  const tookMs = performance.now() - startedMs
  const { user, system } = process.cpuUsage(own)
  const { usage } = meter.read(0)
  const chunks = (await redisCounter(redisUrl, counter)) - before
  const cores = (cpuMs = 0): string => (cpuMs / tookMs).toFixed(2)
  return [
    ((requests / tookMs) * 1_000).toFixed(0).padStart(10),
    ((chunks / tookMs) * 1_000).toFixed(0).padStart(8),
    (requests / chunks).toFixed(1).padStart(10),
    (latency.percentileMs(50) ?? 0).toFixed(1).padStart(10),
    (latency.percentileMs(99) ?? 0).toFixed(1).padStart(6),
    cores(usage.redis?.cpuMs).padStart(12),
    cores(usage.worker?.cpuMs).padStart(6),
    cores((user + system) / 1_000).padStart(7),
  ].join('  ')
}

/** Sends requests at random times, independently for each writer, and waits for all answers. */
async function load(
  writers: readonly Writer[],
  requestsPerS: number,
  durationMs: number,
): Promise<{ requests: number; latency: DurationHistogram }> {
  const latency = new DurationHistogram()
  const pending: Promise<void>[] = []
  const gapMs = 1_000 / requestsPerS
  const startedMs = performance.now()
  const dueMs = writers.map(() => startedMs + exponential(random, gapMs))
  while (performance.now() < startedMs + durationMs) {
    const nowMs = performance.now()
    for (const [index, { chunks }] of writers.entries()) {
      for (let due = dueMs[index] ?? Infinity; due <= nowMs; due = dueMs[index] ?? Infinity) {
        dueMs[index] = due + exponential(random, gapMs)
        const written = chunks.write(ownedRows(1, makeRow()))
        pending.push(written.then(() => latency.record(performance.now() - nowMs)))
      }
    }
    await delay(TICK_MS)
  }
  await Promise.all(pending)
  return { requests: pending.length, latency }
}

function makeRow(): string {
  const prefix = makeRowPrefix({ projectId: 'fleet', retentionDays: 30, receivedAtMs: Date.now() })
  const message = Buffer.from(randomBytes(MESSAGE_BYTES / 2)).toString('hex')
  const shaped = shapeRow({ level: 'info', message }, randomUUIDv7(), prefix, false)
  if ('error' in shaped) throw new Error(shaped.error.code)
  return shaped.row
}
