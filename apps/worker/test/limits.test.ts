import { insertBlock, migrationsFolder, quorumSettings, replicatedStatement } from '@sluice/clickhouse'
import { CONFIRMED_TTL_S } from '@sluice/queue'
import { redisSettings } from '@sluice/runtime'
import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { readWorkerConfig, workerSettings } from '../src/config.ts'
import { workerLimits } from '../src/limits.ts'

it('makes one block of each batch, whatever its size, so that ClickHouse applies its token to all rows', () => {
  expect(insertBlock.rowsMin).toBeGreaterThan(100 * workerSettings.BATCH_ROWS_MAX.maximum)
  expect(insertBlock.bytesMin).toBeGreaterThan(10 * workerLimits.batchBytesMax)
})

const logsSql = await readFile(new URL('0001-logs.sql', migrationsFolder), 'utf8')
/**
 * From the start of one attempt to insert to the start of the next, in one worker. An insert that still runs while another worker
 * takes the batch over commits within this time, too.
 */
const betweenAttemptsS = (workerLimits.insertTimeoutMs + workerLimits.retry.maxMs) / 1_000

/** How long a window of this number of blocks lasts if all workers insert as often as the default settings allow. */
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

  it('is far longer than the time between attempts, with twenty workers and four shards', () => {
    expect(windowS(blocks, { workers: 20, shards: 1 })).toBeGreaterThan(15 * betweenAttemptsS)
    expect(windowS(blocks, { workers: 20, shards: 4 })).toBeGreaterThan(4 * betweenAttemptsS)
  })

  it('is longer than an insert that was given up may still commit, so that a consumed token makes it store nothing', () => {
    const commitsWithinS = workerLimits.insertLingerMaxMs / 1_000
    expect(windowS(blocks, { workers: 20, shards: 1 })).toBeGreaterThan(10 * commitsWithinS)
    expect(windowS(blocks, { workers: 20, shards: 4 })).toBeGreaterThan(2 * commitsWithinS)
  })

  it('is longer than the time between attempts up to the number of workers × shards in the documents', () => {
    expect(windowS(blocks, { workers: 300, shards: 1 })).toBeGreaterThan(1.2 * betweenAttemptsS)
    expect(windowS(blocks, { workers: 20, shards: redisSettings.QUEUE_SHARDS.maximum })).toBeLessThan(
      betweenAttemptsS,
    )
  })
})

it('remembers tokens on a cluster for longer than any outage of all workers, since that window is also limited by age', () => {
  const sql = replicatedStatement(logsSql, 'main')
  const seconds = Number(/\breplicated_deduplication_window_seconds = (\d+)/.exec(sql)?.[1])
  expect(seconds).toBeGreaterThan(10 * CONFIRMED_TTL_S)
})

it('gets the error of a missing quorum from ClickHouse before an insert times out', () => {
  const { insert_quorum_timeout: quorumTimeoutMs } = quorumSettings(workerLimits.insertTimeoutMs)
  expect(quorumTimeoutMs).toBeLessThanOrEqual(workerLimits.insertTimeoutMs / 2)
  // Long enough for another replica to fetch the largest batch at 10 MB/s.
  expect(quorumTimeoutMs).toBeGreaterThan(workerLimits.batchBytesMax / 10_000)
})
