import { compare, readStored, type Findings, type StoredCounts } from './audit.ts'
import type { Cluster } from './cluster.ts'
import { awaitInserts, drainQueue, type QueueCounts } from './drain.ts'
import type { Journal } from './journal.ts'
import type { Victim } from './victim.ts'

export interface Settlement {
  readonly findings: Findings
  readonly stored: StoredCounts
  /** What was left in the queue. */
  readonly queue: QueueCounts
  readonly drainMs: number
}

/** An insert whose sender is gone still ends within ClickHouse's own patience with a silent connection. */
const INSERTS_DEADLINE_MS = 60_000

/**
 * Lets the queue drain, ends the APIs and workers, so that nobody is left to insert anything, and compares what was
 * acknowledged with what is stored.
 */
export async function settle(
  cluster: Cluster,
  journal: Journal,
  drainDeadlineMs: number,
): Promise<Settlement> {
  const { redisUrl, clickhouse } = cluster.services
  const startedAtMs = performance.now()
  const queue = await drainQueue(redisUrl, cluster.names, drainDeadlineMs)
  const drainMs = performance.now() - startedAtMs
  await Promise.all(appsOf(cluster).map((victim) => victim.retire()))
  await awaitInserts(clickhouse, INSERTS_DEADLINE_MS)
  return { ...compare(journal, await readStored(clickhouse, journal.label)), queue, drainMs }
}

/** The APIs and workers. */
export function appsOf({ victims }: Cluster): Victim[] {
  return victims.filter(({ process }) => process.role === 'api' || process.role === 'worker')
}
