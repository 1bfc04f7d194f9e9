import type { ClickHouseAccess } from '@sluice/clickhouse'
import type { QueueNames } from '@sluice/queue'
import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { select } from './clickhouse.ts'
import { pause, within } from './waiting.ts'

export interface QueueCounts {
  readonly wait: number
  readonly active: number
  readonly delayed: number
  readonly failed: number
  readonly failedReasons: readonly string[]
}

const POLL_MS = 100
const CALL_DEADLINE_MS = 5_000
const REASONS_MAX = 5
/** An insert whose sender was killed ends when ClickHouse's timeout for a silent connection has passed. */
const INSERTS_DEADLINE_MS = 60_000

/** Waits until the queue is empty, or until the deadline. A deadline of 0 only counts. @returns the jobs that are left */
export async function drainQueue(
  redisUrl: string,
  names: QueueNames,
  deadlineMs: number,
): Promise<QueueCounts> {
  const redis = connectRedis(redisUrl, { failFast: false })
  redis.on('error', () => undefined)
  try {
    const giveUpAtMs = performance.now() + deadlineMs
    for (;;) {
      const counts = await within(CALL_DEADLINE_MS, 'counting the jobs', countJobs(redis, names))
      if (isEmpty(counts) || performance.now() >= giveUpAtMs) return counts
      await pause(POLL_MS)
    }
  } finally {
    redis.disconnect()
  }
}

export function isEmpty({ wait, active, delayed, failed }: QueueCounts): boolean {
  return wait + active + delayed + failed === 0
}

async function countJobs(redis: RedisConnection, names: QueueNames): Promise<QueueCounts> {
  const keyOf = (state: string): string => `${names.queuePrefix}:${names.queue}:${state}`
  const [wait, active] = await Promise.all([redis.llen(keyOf('wait')), redis.llen(keyOf('active'))])
  const [delayed, failed] = await Promise.all([redis.zcard(keyOf('delayed')), redis.zcard(keyOf('failed'))])
  const ids = failed === 0 ? [] : await redis.zrange(keyOf('failed'), '0', String(REASONS_MAX - 1))
  const reasons = await Promise.all(ids.map((id) => redis.hget(names.jobKey(id), 'failedReason')))
  return { wait, active, delayed, failed, failedReasons: reasons.map((reason) => reason ?? 'unknown') }
}

/** Waits until ClickHouse runs no insert. An insert continues after its sender was killed. @throws when an insert is still running after a minute */
export async function awaitInserts(access: ClickHouseAccess): Promise<void> {
  const giveUpAtMs = performance.now() + INSERTS_DEADLINE_MS
  const query = "SELECT query_id FROM system.processes WHERE query_kind = 'Insert'"
  while ((await select(access, query)).length > 0) {
    if (performance.now() >= giveUpAtMs) throw new Error('ClickHouse is still running inserts')
    await pause(POLL_MS)
  }
}
