import { RowInserter } from '@sluice/clickhouse'
import type { BatchRecord, HeldChunk } from '@sluice/queue'
import { compressRows } from '@sluice/rows'
import { createLogger } from '@sluice/runtime'
import { expect, it, vi } from 'vitest'
import { BatchDelivery } from '../src/batch-delivery.ts'
import { workerLimits } from '../src/limits.ts'
import { Retrier } from '../src/retrier.ts'
import { Semaphore } from '../src/semaphore.ts'

const chunk: HeldChunk = { id: 'a', rows: 1, bytes: 1, frame: compressRows('row\n') }
const TRUSTED_MS = 1_000

/**
 * Delivers a chunk whose insert waits for a permit.
 *
 * @param waits.permitMs how long it waits for the permit
 * @param waits.claimMs how long the claim takes
 * @param state of the batch, if its record is read afterwards
 * @returns how often the batch was sent
 */
async function countInserts(
  { permitMs, claimMs = 0 }: { readonly permitMs: number; readonly claimMs?: number },
  state: BatchRecord['state'],
): Promise<number> {
  const { signal } = new AbortController()
  const logger = createLogger('test', 'silent')
  const insertPermits = new Semaphore(1, signal)
  const otherShard = Promise.withResolvers<void>()
  const busy = insertPermits.run(() => otherShard.promise)
  let nowMs = 0
  const monotonicMs = (): number => nowMs
  const insert = vi.fn<() => Promise<void>>(() => Promise.resolve())
  const delivery = new BatchDelivery({
    ledger: {
      claim: async (batchId, ids) => {
        nowMs += claimMs
        return ids.map(() => batchId)
      },
      read: async () => ({ state, members: ['a'], splits: new Set() }),
      confirm: async () => true,
      release: async () => undefined,
    },
    rowInserter: new RowInserter({
      frameInserter: { insert },
      storedRows: { find: async () => new Set() },
      areTokensAtomic: true,
      sleep: () => Promise.resolve(),
      beforeAttempt: () => Promise.resolve(),
      onTokenWithoutRows: () => undefined,
      lingerMaxMs: workerLimits.insertLingerMaxMs,
      monotonicMs,
    }),
    insertPermits,
    recoveryPermits: new Semaphore(1, signal),
    splitter: { insertByParts: () => Promise.reject(new Error('nothing is split here')) },
    retrier: new Retrier(logger, signal),
    logger,
    loadChunk: async () => chunk,
    makeId: () => 'batch',
    monotonicMs,
    ownershipTrustedMs: TRUSTED_MS,
  })
  const outcomes = await delivery.deliver([chunk])
  expect(insert).not.toHaveBeenCalled()
  nowMs += permitMs
  otherShard.resolve()
  await busy
  await outcomes.get('a')
  return insert.mock.calls.length
}

it('sends a batch when it has a permit', async () => {
  expect(await countInserts({ permitMs: TRUSTED_MS }, 'claimed')).toBe(1)
})

it('does not send a batch that another worker took over while it waited for a permit', async () => {
  expect(await countInserts({ permitMs: TRUSTED_MS + 1 }, 'confirmed')).toBe(0)
})

it('does not send a batch that another worker took over while Redis did not answer the claim', async () => {
  expect(await countInserts({ permitMs: 0, claimMs: TRUSTED_MS + 1 }, 'confirmed')).toBe(0)
})

it('sends a batch once if it waited long but no other worker took it over', async () => {
  expect(await countInserts({ permitMs: TRUSTED_MS + 1 }, 'claimed')).toBe(1)
})
