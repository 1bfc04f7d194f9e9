import { pause } from '@sluice/harness'
import { drainQueue, isEmpty } from '@sluice/harness/drain'
import type { Installation } from '@sluice/local'
import { queueNames } from '@sluice/queue'
import { Redis } from 'ioredis'
import { type ProcessSize, sizeOf } from '../../bench/src/measure/process-meter.ts'

/** What an installation holds at rest: without requests or jobs in flight. */
export interface RestState {
  readonly api: ProcessSize
  /** Redis keys without an expiry. */
  readonly lastingKeys: ReadonlySet<string>
}

const limits = {
  /** For a backlog of some seconds on a busy machine. */
  drainMs: 120_000,
  /** Closed connections and delivered batches are released within moments. */
  settleMs: 10_000,
  /** How long to wait after the queue is empty, for what cannot be observed. */
  restMs: 1_500,
  pollMs: 200,
  /**
   * How much the API may grow after the warm-up. Its heap varies by about 100 MB without a leak. In a run of a million
   * requests, this detects a leak of 180 bytes per request.
   */
  growthBytesMax: 160 * 1_024 * 1_024,
  scanCount: 1_000,
} as const

/** Waits until the queue is empty and connections are closed, and reads the state. */
export async function readRestState(installation: Installation): Promise<RestState> {
  await drain(installation)
  await pause(limits.restMs)
  return read(installation)
}

/** Finds what remains at rest and was not there before. A run must leave nothing. */
export async function findLeftovers(
  installation: Installation,
  before: RestState,
): Promise<{ rest: RestState; leftovers: string[] }> {
  await drain(installation)
  const giveUpAtMs = performance.now() + limits.settleMs
  for (;;) {
    const rest = await read(installation)
    const leftovers = compare(before, rest)
    if (leftovers.length === 0 || performance.now() >= giveUpAtMs) return { rest, leftovers }
    await pause(limits.pollMs)
  }
}

function compare(before: RestState, { api, lastingKeys }: RestState): string[] {
  const leftovers: string[] = []
  if (api.handles > before.api.handles) {
    leftovers.push(`the API has ${api.handles} open files and sockets; before, it had ${before.api.handles}`)
  }
  if (api.residentBytes > before.api.residentBytes + limits.growthBytesMax) {
    leftovers.push(`the API uses ${api.residentBytes} bytes; before, it used ${before.api.residentBytes}`)
  }
  const newKeys = lastingKeys.difference(before.lastingKeys)
  if (newKeys.size > 0) {
    leftovers.push(`${newKeys.size} keys without an expiry are left in Redis, such as ${[...newKeys][0]}`)
  }
  return leftovers
}

async function drain({ redisUrl, prefix }: Installation): Promise<void> {
  const queue = await drainQueue(redisUrl, queueNames(prefix), limits.drainMs)
  if (!isEmpty(queue)) throw new Error(`the queue is not empty: ${JSON.stringify(queue)}`)
}

async function read({ processes, redisUrl }: Installation): Promise<RestState> {
  const { pid } = processes.api
  if (pid === undefined) throw new Error('the API is not running')
  return { api: sizeOf([pid]), lastingKeys: await readLastingKeys(redisUrl) }
}

async function readLastingKeys(redisUrl: string): Promise<Set<string>> {
  const redis = new Redis(redisUrl)
  redis.on('error', () => undefined)
  try {
    const lasting = new Set<string>()
    for await (const keys of redis.scanStream({ count: limits.scanCount }) as AsyncIterable<string[]>) {
      const pipeline = redis.pipeline()
      for (const key of keys) pipeline.pttl(key)
      const results = (await pipeline.exec()) ?? []
      // PTTL returns -1 for a key without an expiry.
      for (const [i, key] of keys.entries()) if (results[i]?.[1] === -1) lasting.add(key)
    }
    return lasting
  } finally {
    redis.disconnect()
  }
}
