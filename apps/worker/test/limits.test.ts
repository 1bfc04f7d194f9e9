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
function windowS(blocks: number, workersAndShards: number): number {
  const insertsPerS = (workersAndShards * 1_000) / readWorkerConfig({}).BATCH_WAIT_MS
  const partitionsPerInsert = 2
  return blocks / (insertsPerS * partitionsPerInsert)
}

it.each([
  ['one server', logsSql, /\bnon_replicated_deduplication_window = (\d+)/],
  ['a cluster', replicatedStatement(logsSql, 'main'), /\breplicated_deduplication_window = (\d+)/],
])('the deduplication window of %s is as long as the documents say', (_where, sql, pattern) => {
  const blocks = Number(pattern.exec(sql)?.[1])
  const commitsWithinS = workerLimits.insertLingerMaxMs / 1_000
  for (const [workersAndShards, attempts, commits] of [
    [20 * 1, 15, 10],
    // A consumed token makes an insert that was given up store nothing.
    [20 * 4, 4, 2],
    [300 * 1, 1.2, 0],
  ] as const) {
    expect(windowS(blocks, workersAndShards)).toBeGreaterThan(attempts * betweenAttemptsS)
    expect(windowS(blocks, workersAndShards)).toBeGreaterThan(commits * commitsWithinS)
  }
  expect(windowS(blocks, 20 * redisSettings.QUEUE_SHARDS.maximum)).toBeLessThan(betweenAttemptsS)
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

describe('the limits of a worker', () => {
  const { LOCK_DURATION_MS, SHUTDOWN_DEADLINE_MS } = readWorkerConfig({})

  it('let it wait for a restart of ClickHouse while its batches certainly belong to it, so that nothing is looked up', () => {
    expect(workerLimits.giveUpMs).toBeLessThan(LOCK_DURATION_MS / 2)
  })

  it('let it hold several batches, and one script can claim each of them', () => {
    expect(workerLimits.chunksMax).toBeGreaterThanOrEqual(2 * workerLimits.batchChunksMax)
    // Lua passes about 8,000 arguments to one command, and a claim has three for each chunk.
    expect(3 * workerLimits.batchChunksMax).toBeLessThan(7_999)
  })

  it('end a claim and a step of a repair long before another worker may have the batch', () => {
    expect(workerLimits.claimMaxMs).toBeLessThan(workerLimits.giveUpMs)
    expect(workerLimits.repairStepMaxMs).toBeLessThan(LOCK_DURATION_MS / 2)
  })

  it('let an insert of a row that was given up arrive before the row is dead-lettered', () => {
    // The kernel sends the data of a closed connection again for about 100 s.
    expect(workerLimits.insertLingerMaxMs).toBeGreaterThan(100_000)
    expect(workerLimits.insertLingerMaxMs).toBeGreaterThan(workerLimits.insertTimeoutMs)
  })

  it('let an operator repair a table, and make several attempts meanwhile', () => {
    expect(workerLimits.unknownRejectionMs).toBeGreaterThan(5 * workerLimits.suspendedRetryMs)
    // The result of the last attempt is known when an attempt of another worker has ended.
    expect(workerLimits.unknownRejectionMs).toBeGreaterThan(workerLimits.insertLingerMaxMs)
  })

  it('leave time for inserts before the deadline of a shutdown', () => {
    expect(2 * workerLimits.requeueMs).toBeLessThan(SHUTDOWN_DEADLINE_MS)
    expect(workerLimits.closeMs).toBeLessThan(workerLimits.requeueMs)
  })
})
