import { quorumSettings, redisSettings, replicatedStatement } from '@sluice/runtime'
import { migrationsFolder } from '@sluice/schema'
import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { INSERTED_TTL_S } from '../src/batch-ledger.ts'
import { readWorkerConfig, workerSettings } from '../src/config.ts'
import { blockBytesMin, blockRowsMin, workerLimits } from '../src/limits.ts'

it('makes a batch one block, whatever its size, so that a token covers the whole of it', () => {
  expect(blockRowsMin).toBeGreaterThan(100 * workerSettings.BATCH_ROWS_MAX.maximum)
  expect(blockBytesMin).toBeGreaterThan(10 * workerLimits.batchBytesMax)
})

const logsSql = await readFile(new URL('0001-logs.sql', migrationsFolder), 'utf8')
/** From one try of an insert by one worker to its next. What lands while another takes over does so within that, too. */
const betweenTriesS = (workerLimits.insertTimeoutMs + workerLimits.retry.maxMs) / 1_000

/** How long a window of so many blocks lasts with the default settings, while all insert as often as they do. */
function windowS(blocks: number, { workers, shards }: { workers: number; shards: number }): number {
  const insertsPerS = (workers * shards * 1_000) / readWorkerConfig({}).BATCH_WAIT_MS
  const partitionsPerInsert = 2
  return blocks / (insertsPerS * partitionsPerInsert)
}

describe.each([
  ['one server', logsSql, /\bnon_replicated_deduplication_window = (\d+)/],
  ['a cluster', replicatedStatement(logsSql, 'main'), /\breplicated_deduplication_window = (\d+)/],
])('the deduplication window of %s', (_where, sql, pattern) => {
  const blocks = Number(pattern.exec(sql)?.[1])

  it('is far longer than it takes to try again, with twenty workers of four shards', () => {
    expect(windowS(blocks, { workers: 20, shards: 1 })).toBeGreaterThan(15 * betweenTriesS)
    expect(windowS(blocks, { workers: 20, shards: 4 })).toBeGreaterThan(4 * betweenTriesS)
  })

  it('is longer than that for as many workers times shards as the documents say', () => {
    expect(windowS(blocks, { workers: 300, shards: 1 })).toBeGreaterThan(1.2 * betweenTriesS)
    expect(windowS(blocks, { workers: 20, shards: redisSettings.QUEUE_SHARDS.maximum })).toBeLessThan(
      betweenTriesS,
    )
  })
})

it('has a window on a cluster that no outage of all workers reaches, for it is also one of age', () => {
  const sql = replicatedStatement(logsSql, 'main')
  const seconds = Number(/\breplicated_deduplication_window_seconds = (\d+)/.exec(sql)?.[1])
  expect(seconds).toBeGreaterThan(10 * INSERTED_TTL_S)
})

it('hears from ClickHouse that a quorum is missing before it gives an insert up', () => {
  const { insert_quorum_timeout: quorumTimeoutMs } = quorumSettings(workerLimits.insertTimeoutMs)
  expect(quorumTimeoutMs).toBeLessThanOrEqual(workerLimits.insertTimeoutMs / 2)
  // Long enough for another replica to fetch the largest batch at 10 MB/s.
  expect(quorumTimeoutMs).toBeGreaterThan(workerLimits.batchBytesMax / 10_000)
})
