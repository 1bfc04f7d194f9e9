import { setTimeout as delay } from 'node:timers/promises'
import { withRedis } from '@sluice/local'

/** By then Redis has freed what the responses to the last requests held. */
const SETTLE_MS = 500

/** The fields of one section of Redis' INFO. */
export async function redisInfo(url: string, section: string): Promise<ReadonlyMap<string, string>> {
  const lines = (await withRedis(url, (redis) => redis.info(section))).split('\r\n')
  return new Map(
    lines.map((line): [string, string] => [line.split(':', 1)[0] ?? '', line.split(':').slice(1).join(':')]),
  )
}

/** The value of a counter, or 0 if it does not exist. */
export async function redisCounter(url: string, key: string): Promise<number> {
  return Number((await withRedis(url, (redis) => redis.get(key))) ?? 0)
}

/** The bytes that Redis has allocated. Exact only while no requests are in flight. */
export async function redisUsedBytes(url: string): Promise<number> {
  await delay(SETTLE_MS)
  return Number((await redisInfo(url, 'memory')).get('used_memory'))
}
