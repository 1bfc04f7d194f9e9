import { migrationsFolder } from '@sluice/schema'
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { readWorkerConfig, workerSettings } from '../src/config.ts'
import { blockBytesMin, blockRowsMin, workerLimits } from '../src/limits.ts'

it('makes a batch one block, whatever its size, so that a token covers the whole of it', () => {
  expect(blockRowsMin).toBeGreaterThan(100 * workerSettings.BATCH_ROWS_MAX.maximum)
  expect(blockBytesMin).toBeGreaterThan(10 * workerLimits.batchBytesMax)
})

it('has a deduplication window far longer than a take-over, with twenty workers inserting as fast as they can', async () => {
  const sql = await readFile(new URL('0001-logs.sql', migrationsFolder), 'utf8')
  const windowBlocks = Number(/non_replicated_deduplication_window = (\d+)/.exec(sql)?.[1])
  const { LOCK_DURATION_MS, BATCH_WAIT_MS } = readWorkerConfig({})
  const takeOverS = LOCK_DURATION_MS / 1_000 + 2 * 10
  const insertsPerS = 1_000 / BATCH_WAIT_MS
  const partitionsPerInsert = 2
  expect(windowBlocks / (20 * insertsPerS * partitionsPerInsert)).toBeGreaterThanOrEqual(10 * takeOverS)
})
