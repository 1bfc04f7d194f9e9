import type { Stack } from '@sluice/local'
import { Redis } from 'ioredis'
import { redisNames } from '@sluice/schema'
import { sizeOf, type ProcessSize } from '../../bench/src/measure/process-size.ts'
import { drainQueue, isEmpty } from '../chaos/drain.ts'
import { pause } from '../chaos/pause.ts'

/** What is there while nothing is under way. */
export interface Rest {
  readonly api: ProcessSize
  /** Keys of Redis that do not go by themselves. */
  readonly lastingKeys: ReadonlySet<string>
}

const limits = {
  /** For a backlog of some seconds, on a machine that is busy. */
  drainMs: 120_000,
  /** Closed connections and delivered batches are let go of within moments. */
  settleMs: 10_000,
  /** How long before a look everything has been at rest, where nothing tells. */
  restMs: 1_500,
  pollMs: 200,
  /**
   * How much larger the API may be at the end than after the warm-up: its heap grows and shrinks by some 100 MB by
   * itself. Over a million requests, a leak of 180 bytes a request shows.
   */
  growthBytesMax: 160 * 1_024 * 1_024,
  scanCount: 1_000,
} as const

/** Lets the queue drain and connections close, and looks at what is there then. */
export async function lookAtRest(stack: Stack): Promise<Rest> {
  await drain(stack)
  await pause(limits.restMs)
  return look(stack)
}

/** What is there now and was not before, once all had time to go; nothing is what a run is to show. */
export async function findLeftovers(
  stack: Stack,
  before: Rest,
): Promise<{ rest: Rest; leftovers: string[] }> {
  await drain(stack)
  const giveUpAtMs = performance.now() + limits.settleMs
  for (;;) {
    const rest = await look(stack)
    const leftovers = compare(before, rest)
    if (leftovers.length === 0 || performance.now() >= giveUpAtMs) return { rest, leftovers }
    await pause(limits.pollMs)
  }
}

function compare(before: Rest, { api, lastingKeys }: Rest): string[] {
  const leftovers: string[] = []
  if (api.handles > before.api.handles) {
    leftovers.push(`the API has ${api.handles} files and sockets open, and had ${before.api.handles}`)
  }
  if (api.residentBytes > before.api.residentBytes + limits.growthBytesMax) {
    leftovers.push(`the API has ${api.residentBytes} bytes, and had ${before.api.residentBytes}`)
  }
  const newKeys = lastingKeys.difference(before.lastingKeys)
  if (newKeys.size > 0) leftovers.push(`${newKeys.size} keys stay in Redis, such as ${[...newKeys][0]}`)
  return leftovers
}

async function drain({ redisUrl, prefix }: Stack): Promise<void> {
  const queue = await drainQueue(redisUrl, redisNames(prefix), limits.drainMs)
  if (!isEmpty(queue)) throw new Error(`the queue is not drained: ${JSON.stringify(queue)}`)
}

async function look(stack: Stack): Promise<Rest> {
  const { pid } = stack.processes.api
  if (pid === undefined) throw new Error('the API is not running')
  return { api: sizeOf([pid]), lastingKeys: await readLastingKeys(stack.redisUrl) }
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
      // -1: it has no time of its own to go.
      for (const [i, key] of keys.entries()) if (results[i]?.[1] === -1) lasting.add(key)
    }
    return lasting
  } finally {
    redis.disconnect()
  }
}
