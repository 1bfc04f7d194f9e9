import { connectClickHouse, connectRedis, type ClickHouseAccess } from '@sluice/runtime'
import type { RedisNames } from '@sluice/schema'
import { Queue } from 'bullmq'
import { pause, within } from './pause.ts'

export interface QueueCounts {
  readonly wait: number
  readonly active: number
  readonly delayed: number
  readonly failed: number
  /** Why jobs failed, a few of them. */
  readonly failedReasons: readonly string[]
}

const POLL_MS = 100
const CALL_DEADLINE_MS = 5_000
const REASONS_MAX = 5

/** Waits until the queue is empty, at most until the deadline. @returns what is left */
export async function drainQueue(
  redisUrl: string,
  names: RedisNames,
  deadlineMs: number,
): Promise<QueueCounts> {
  const redis = connectRedis(redisUrl, { failFast: false })
  redis.on('error', () => undefined)
  const queue = new Queue(names.queue, { connection: redis, prefix: names.queuePrefix })
  queue.on('error', () => undefined)
  try {
    const giveUpAtMs = performance.now() + deadlineMs
    for (;;) {
      const counts = await within(CALL_DEADLINE_MS, 'counting the jobs', readCounts(queue))
      if (isEmpty(counts) || performance.now() >= giveUpAtMs) return counts
      await pause(POLL_MS)
    }
  } finally {
    await queue.close()
    redis.disconnect()
  }
}

export function isEmpty({ wait, active, delayed, failed }: QueueCounts): boolean {
  return wait + active + delayed + failed === 0
}

async function readCounts(queue: Queue): Promise<QueueCounts> {
  const counts = await queue.getJobCounts('wait', 'active', 'delayed', 'failed')
  const { wait = 0, active = 0, delayed = 0, failed = 0 } = counts
  const jobs = failed === 0 ? [] : await queue.getFailed(0, REASONS_MAX - 1)
  return { wait, active, delayed, failed, failedReasons: jobs.map(({ failedReason }) => failedReason) }
}

/**
 * Waits until ClickHouse runs no insert any more: one whose sender was killed goes on without it.
 *
 * @throws when it still does after the deadline
 */
export async function awaitInserts(access: ClickHouseAccess, deadlineMs: number): Promise<void> {
  const client = connectClickHouse(access, { requestTimeoutMs: CALL_DEADLINE_MS, connectionsMax: 1 })
  try {
    const giveUpAtMs = performance.now() + deadlineMs
    for (;;) {
      const result = await client.query({
        query: "SELECT toUInt32(count()) AS inserts FROM system.processes WHERE query_kind = 'Insert'",
        format: 'JSONEachRow',
      })
      const [row] = await result.json<{ inserts: number }>()
      if (row?.inserts === 0) return
      if (performance.now() >= giveUpAtMs) throw new Error('ClickHouse still runs inserts')
      await pause(POLL_MS)
    }
  } finally {
    await client.close()
  }
}
