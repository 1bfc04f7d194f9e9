import { join } from 'node:path'

/** What a process is for. */
export type Role = 'api' | 'worker' | 'clickhouse' | 'redis'

/**
 * The order in which processes end: who accepts entries first, who moves them second, and last where they are kept. The
 * roles of one stage end together.
 */
export const stopStages: readonly (readonly Role[])[] = [['api'], ['worker'], ['clickhouse', 'redis']]

/**
 * How long a process may take to end after SIGTERM before it is killed. Redis and ClickHouse have everything on disk
 * that they confirmed, so little depends on their being waited for; ClickHouse takes 1.5 s.
 */
export const stopDeadlinesMs: Readonly<Record<Role, number>> = {
  api: 3_500,
  worker: 3_500,
  clickhouse: 2_500,
  redis: 2_500,
}

/** How long all of it may take, as `npm start` promises. */
const stopAllDeadlineMs = 10_000

const worstCaseMs = stopStages
  .map((stage) => Math.max(...stage.map((role) => stopDeadlinesMs[role])))
  .reduce((sum, ms) => sum + ms, 0)
if (worstCaseMs >= stopAllDeadlineMs) throw new Error('the stop deadlines add up to more than is promised')

/** Where a process's output goes. */
export function logFileOf(dataDir: string, name: string): string {
  return join(dataDir, 'logs', `${name}.log`)
}
