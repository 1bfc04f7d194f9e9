import { setTimeout as delay } from 'node:timers/promises'
import { connectRedis } from '@sluice/runtime'

/** What the answers to the last requests still hold is given back by then. */
const SETTLE_MS = 500
const COMMAND_DEADLINE_MS = 5_000

/** One section of Redis' INFO, by its names. */
export async function redisInfo(url: string, section: string): Promise<ReadonlyMap<string, string>> {
  const redis = connectRedis(url, { failFast: false })
  redis.on('error', () => undefined)
  const timeout = setTimeout(() => redis.disconnect(), COMMAND_DEADLINE_MS)
  try {
    const lines = (await redis.info(section)).split('\r\n')
    return new Map(
      lines.map((line): [string, string] => [
        line.split(':', 1)[0] ?? '',
        line.split(':').slice(1).join(':'),
      ]),
    )
  } finally {
    clearTimeout(timeout)
    redis.disconnect()
  }
}

/** All that Redis has allocated, in bytes. To be asked when nothing is going on. */
export async function redisUsedBytes(url: string): Promise<number> {
  await delay(SETTLE_MS)
  return Number((await redisInfo(url, 'memory')).get('used_memory'))
}
