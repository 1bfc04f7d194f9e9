import { createLogger } from '@sluice/runtime'
import { encodeFrame } from '@sluice/schema'
import { expect, it, vi } from 'vitest'
import type { BatchRecord } from '../src/batch-ledger.ts'
import type { HeldChunk } from '../src/collector.ts'
import { Delivery } from '../src/delivery.ts'
import { Persistence } from '../src/persistence.ts'
import { Sender } from '../src/sender.ts'
import { Slots } from '../src/slots.ts'

const chunk: HeldChunk = { id: 'a', rows: 1, bytes: 1, frame: encodeFrame('row\n') }
const TAKE_OVER_MS = 1_000

/** Delivers a chunk whose insert has to wait for its turn, or for the claim's answer. @returns how often it was sent */
async function sentAfter(
  { waitedMs, claimedMs = 0 }: { readonly waitedMs: number; readonly claimedMs?: number },
  state: BatchRecord['state'],
): Promise<number> {
  const { signal } = new AbortController()
  const slots = new Slots(1, signal)
  const otherShard = Promise.withResolvers<void>()
  const busy = slots.run(() => otherShard.promise)
  let nowMs = 0
  const insert = vi.fn<() => Promise<void>>(() => Promise.resolve())
  const delivery = new Delivery({
    ledger: {
      claim: async (batchId, ids) => {
        nowMs += claimedMs
        return ids.map(() => batchId)
      },
      read: async () => ({ state, members: ['a'], splits: new Set() }),
      confirm: async () => undefined,
      release: async () => undefined,
    },
    sender: new Sender({
      inserter: { insert },
      storedRows: { find: async () => new Set() },
      areTokensAtomic: true,
      sleep: () => Promise.resolve(),
      logger: createLogger('test', 'silent'),
      now: () => nowMs,
    }),
    slots,
    recovering: new Slots(1, signal),
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
  expect(await sentAfter({ waitedMs: TAKE_OVER_MS }, 'written')).toBe(1)
})

it('does not send a batch that was taken over while it waited for its turn', async () => {
  expect(await sentAfter({ waitedMs: TAKE_OVER_MS + 1 }, 'inserted')).toBe(0)
})

it('does not send a batch that was taken over while nothing was heard of its claim', async () => {
  expect(await sentAfter({ waitedMs: 0, claimedMs: TAKE_OVER_MS + 1 }, 'inserted')).toBe(0)
})

it('sends a batch that waited long, but that nobody has taken over, once', async () => {
  expect(await sentAfter({ waitedMs: TAKE_OVER_MS + 1 }, 'written')).toBe(1)
})
