import { insertBlock, migrationsFolder, quorumSettings, replicatedStatement } from '@sluice/clickhouse'
import { CONFIRMED_TTL_S } from '@sluice/queue'
import { redisSettings } from '@sluice/runtime'
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { readWorkerConfig, workerSettings } from '../src/config.ts'
import { workerLimits } from '../src/limits.ts'

it('makes one block of each batch, whatever its size, so that ClickHouse applies its token to all rows', () => {
  expect(Number(insertBlock.max_insert_block_size)).toBeGreaterThan(
    100 * workerSettings.BATCH_ROWS_MAX.maximum,
  )
  expect(Number(insertBlock.min_insert_block_size_bytes)).toBeGreaterThan(10 * workerLimits.batchBytesMax)
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

const { LOCK_DURATION_MS, SHUTDOWN_DEADLINE_MS } = readWorkerConfig({})
const { giveUpMs, insertLingerMaxMs, unknownRejectionMs, requeueMs, batchChunksMax } = workerLimits

it.each([
  // Its batches certainly belong to it then, so that nothing is looked up.
  ['wait for a restart of ClickHouse', giveUpMs, LOCK_DURATION_MS / 2],
  ['hold several batches', 2 * batchChunksMax, workerLimits.chunksMax + 1],
  // Lua passes about 8,000 arguments to one command, and a claim has three for each chunk.
  ['claim a batch by one script', 3 * batchChunksMax, 7_999],
  ['end a claim long before it gives up', workerLimits.claimMaxMs, giveUpMs],
  [
    'end a step of a repair before another worker has the batch',
    workerLimits.repairStepMaxMs,
    LOCK_DURATION_MS / 2,
  ],
  // The kernel sends the data of a closed connection again for about 100 s.
  [
    'let an insert that was given up arrive',
    Math.max(100_000, workerLimits.insertTimeoutMs),
    insertLingerMaxMs,
  ],
  ['let an operator repair a table', 5 * workerLimits.suspendedRetryMs, unknownRejectionMs],
  ['know the result of its last attempt then', insertLingerMaxMs, unknownRejectionMs],
  ['insert before the deadline of a shutdown', 2 * requeueMs, SHUTDOWN_DEADLINE_MS],
  ['requeue chunks before it closes', workerLimits.closeMs, requeueMs],
])('the limits of a worker let it %s', (_what, smaller, larger) => {
  expect(smaller).toBeLessThan(larger)
})
