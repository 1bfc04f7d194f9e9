import type { ClickHouseAccess } from '@sluice/clickhouse'
import type { QueueNames } from '@sluice/queue'
import { audit, type Audit, isClean } from './audit.ts'
import { awaitInserts, drainQueue, isEmpty, type QueueCounts } from './drain.ts'
import type { Journal } from './journal.ts'

interface SettledStores {
  readonly redisUrl: string
  readonly shards: readonly QueueNames[]
  readonly clickhouse: ClickHouseAccess
}

interface SettleOptions {
  readonly drainDeadlineMs?: number | undefined
  /** Runs when the queues are empty, and stops the workers: from then on no insert begins. */
  readonly drained?: () => Promise<unknown>
}

/** The audit of a journal, after the queues were drained. */
export interface Settlement extends Audit {
  readonly queues: readonly QueueCounts[]
  readonly drainMs: number
}

/** Includes the takeover of chunks of killed workers, on a busy machine. */
const DRAIN_DEADLINE_MS = 60_000
const MESSAGES_SHOWN_MAX = 10

/** Waits until the queues are empty and no insert is running. Then compares the journal with what is stored. */
export async function settle(
  { redisUrl, shards, clickhouse }: SettledStores,
  journal: Journal,
  { drainDeadlineMs = DRAIN_DEADLINE_MS, drained }: SettleOptions = {},
): Promise<Settlement> {
  const startedAtMs = performance.now()
  const queues = await Promise.all(shards.map((names) => drainQueue(redisUrl, names, drainDeadlineMs)))
  const drainMs = performance.now() - startedAtMs
  await drained?.()
  await awaitInserts(clickhouse)
  return { ...(await audit(clickhouse, journal)), queues, drainMs }
}

/** Whether every acknowledged entry is stored once, and nothing else is stored or left in a queue. */
export function isExactlyOnce({ queues, findings }: Pick<Settlement, 'queues' | 'findings'>): boolean {
  return queues.every(isEmpty) && isClean(findings)
}

export function describeSettlement(
  journal: Journal,
  { queues, drainMs, findings, stored }: Settlement,
): string {
  const { lost, doubled, storedThoughRejected, foreign } = findings
  const examples = Object.entries({ lost, duplicated: doubled }).map(([what, found]) => {
    const messages = found.slice(0, MESSAGES_SHOWN_MAX).map(({ number }) => journal.message(number))
    return messages.length === 0 ? '' : `${what}, such as: ${messages.join(', ')}`
  })
  return [
    `${journal.size} entries sent: ${journal.count('acknowledged')} acknowledged, ${journal.count('rejected')} rejected (4xx), ` +
      `${journal.count('refused')} answered with 5xx, ${journal.count('unknown')} without a response`,
    queues.every(isEmpty)
      ? `the queue is empty after ${(drainMs / 1_000).toFixed(1)} s`
      : `left in the queue: ${JSON.stringify(queues)}`,
    `stored: ${stored.rows} rows and ${stored.deadLetters} dead letters, of these ${stored.refusedButStored} answered with 5xx ` +
      `and ${stored.unknownButStored} without a response`,
    `audit: ${lost.length} lost, ${doubled.length} duplicated, ${storedThoughRejected.length} stored though rejected, ` +
      `${foreign.length} never sent`,
    ...examples.filter((line) => line !== ''),
  ].join('\n')
}
