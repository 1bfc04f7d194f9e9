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
   * How much the API may grow after the warm-up. Its heap varies by about 100 MB without a leak. In a run of a million requests, this detects a leak
   * of 180 bytes per request.
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

function compare({ api: old, lastingKeys: oldKeys }: RestState, { api, lastingKeys }: RestState): string[] {
  const newKeys = [...lastingKeys.difference(oldKeys)]
  const { handles, residentBytes } = api
  const findings: readonly (readonly [isFound: boolean, text: string])[] = [
    [handles > old.handles, `the API has ${handles} open files and sockets; before, it had ${old.handles}`],
    [
      residentBytes > old.residentBytes + limits.growthBytesMax,
      `the API uses ${residentBytes} bytes; before, it used ${old.residentBytes}`,
    ],
    [newKeys.length > 0, `${newKeys.length} keys without an expiry are left in Redis, such as ${newKeys[0]}`],
  ]
  return findings.flatMap(([isFound, text]) => (isFound ? [text] : []))
}

async function drain({ redisUrl, prefix }: Installation): Promise<void> {
  const queue = await drainQueue(redisUrl, queueNames(prefix), limits.drainMs)
  if (!isEmpty(queue)) throw new Error(`the queue is not empty: ${JSON.stringify(queue)}`)
}

async function read({ processes, redisUrl }: Installation): Promise<RestState> {
  const { pid } = processes.api
  if (pid === undefined) throw new Error('the API is not running')
  const redis = new Redis(redisUrl)
  redis.on('error', () => undefined)
  try {
    const lastingKeys = new Set<string>()
    for await (const keys of redis.scanStream({ count: limits.scanCount }) as AsyncIterable<string[]>) {
      const ttls = await Promise.all(keys.map((key) => redis.pttl(key)))
      // PTTL returns -1 for a key without an expiry.
      for (const [i, key] of keys.entries()) if (ttls[i] === -1) lastingKeys.add(key)
    }
    return { api: sizeOf([pid]), lastingKeys }
  } finally {
    redis.disconnect()
  }
}
