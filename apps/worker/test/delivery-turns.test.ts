import { createLogger } from '@sluice/runtime'
import { expect, it, vi } from 'vitest'
import type { BatchRecord } from '../src/batch-ledger.ts'
import type { HeldChunk } from '../src/collector.ts'
import { Delivery } from '../src/delivery.ts'
import { Persistence } from '../src/persistence.ts'
import { Sender } from '../src/sender.ts'
import { Slots } from '../src/slots.ts'

const chunk: HeldChunk = { id: 'a', rows: 1, bytes: 1, frame: Buffer.from('a') }
const TAKE_OVER_MS = 1_000

/** Delivers a chunk whose insert has to wait for its turn for so long. @returns how often it was sent */
async function sentAfter(waitedMs: number, state: BatchRecord['state']): Promise<number> {
  const { signal } = new AbortController()
  const slots = new Slots(1, signal)
  const otherShard = Promise.withResolvers<void>()
  const busy = slots.run(() => otherShard.promise)
  let nowMs = 0
  const insert = vi.fn<() => Promise<void>>(() => Promise.resolve())
  const delivery = new Delivery({
    ledger: {
      claim: async (batchId, ids) => ids.map(() => batchId),
      read: async () => ({ state, members: ['a'], splits: new Set() }),
      recordSplit: async () => undefined,
      confirm: async () => undefined,
      release: async () => undefined,
    },
    sender: new Sender({
      inserter: { insert },
      storedRows: { find: () => Promise.reject(new Error('nothing is sent again here')) },
      areTokensAtomic: false,
      sleep: () => Promise.resolve(),
      logger: createLogger('test', 'silent'),
    }),
    slots,
    splitter: { insert: () => Promise.reject(new Error('nothing is split here')) },
    persistence: new Persistence(createLogger('test', 'silent'), signal),
    loadChunk: async () => chunk,
    makeId: () => 'batch',
    now: () => nowMs,
    takeOverMs: TAKE_OVER_MS,
  })
  const outcomes = await delivery.deliver([chunk])
  expect(insert).not.toHaveBeenCalled()
  nowMs += waitedMs
  otherShard.resolve()
  await busy
  await outcomes.get('a')
  return insert.mock.calls.length
}

it('sends a batch when it is its turn', async () => {
  expect(await sentAfter(TAKE_OVER_MS, 'written')).toBe(1)
})

it('does not send a batch that was taken over while it waited for its turn', async () => {
  expect(await sentAfter(TAKE_OVER_MS + 1, 'inserted')).toBe(0)
})

it('sends a batch that waited long, but that nobody has taken over, once', async () => {
  expect(await sentAfter(TAKE_OVER_MS + 1, 'written')).toBe(1)
})
