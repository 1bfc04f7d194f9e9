import { quorumSettings, replicatedStatement } from '@sluice/runtime'
import { migrationsFolder } from '@sluice/schema'
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { INSERTED_TTL_S } from '../src/batch-ledger.ts'
import { readWorkerConfig, workerSettings } from '../src/config.ts'
import { blockBytesMin, blockRowsMin, workerLimits } from '../src/limits.ts'

it('makes a batch one block, whatever its size, so that a token covers the whole of it', () => {
  expect(blockRowsMin).toBeGreaterThan(100 * workerSettings.BATCH_ROWS_MAX.maximum)
  expect(blockBytesMin).toBeGreaterThan(10 * workerLimits.batchBytesMax)
})

const logsSql = await readFile(new URL('0001-logs.sql', migrationsFolder), 'utf8')
/** From the first try of an insert by a worker that dies then to the last one by the worker that takes over. */
const takeOverS = readWorkerConfig({}).LOCK_DURATION_MS / 1_000 + 2 * 10

it.each([
  ['one server', logsSql],
  ['a cluster', replicatedStatement(logsSql, 'main')],
])(
  'has a deduplication window on %s far longer than a take-over, with twenty workers inserting as fast as they can',
  (_where, sql) => {
    const windowBlocks = Number(/replicated_deduplication_window = (\d+)/.exec(sql)?.[1])
    const insertsPerS = 1_000 / readWorkerConfig({}).BATCH_WAIT_MS
    const partitionsPerInsert = 2
    expect(windowBlocks / (20 * insertsPerS * partitionsPerInsert)).toBeGreaterThanOrEqual(10 * takeOverS)
  },
)

it('has a window on a cluster that no outage of all workers reaches, for it is also one of age', () => {
  const sql = replicatedStatement(logsSql, 'main')
  const windowS = Number(/\breplicated_deduplication_window_seconds = (\d+)/.exec(sql)?.[1])
  expect(windowS).toBeGreaterThan(10 * INSERTED_TTL_S)
})

it('hears from ClickHouse that a quorum is missing before it gives an insert up', () => {
  const { insert_quorum_timeout: quorumTimeoutMs } = quorumSettings(workerLimits.insertTimeoutMs)
  expect(quorumTimeoutMs).toBeLessThanOrEqual(workerLimits.insertTimeoutMs / 2)
  // Long enough for another replica to fetch the largest batch at 10 MB/s.
  expect(quorumTimeoutMs).toBeGreaterThan(workerLimits.batchBytesMax / 10_000)
})
