import type { ProcessReport } from '@sluice/ops'
import type { Reading, RedisReading, ShardRows } from '../../src/status/reading.ts'

/** A shard without chunks. */
export function shardRows(given: Partial<ShardRows> = {}): ShardRows {
  return {
    shard: 0,
    waiting: 0,
    delayed: 0,
    inHand: 0,
    failed: 0,
    oldestAgeS: 0,
    totals: { added: 0, inserted: 0, deadLettered: 0, removed: 0 },
    ...given,
  }
}

export function processReport(given: Partial<ProcessReport> = {}): ProcessReport {
  return { id: 'p', role: 'api', host: 'web-1', pid: 7, version: '1.2.3', uptimeS: 60, ageS: 1, ...given }
}

/** A reading of an idle installation. */
export function readingOf(redis: Partial<RedisReading> = {}, given: Partial<Reading> = {}): Reading {
  return {
    redis: { shards: [shardRows()], servers: [], processes: [], atMs: 0, ...redis },
    deadLetters: { total: 0, today: 0 },
    errors: [],
    ...given,
  }
}
