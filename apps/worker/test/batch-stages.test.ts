import { createLogger } from '@sluice/runtime'
import type { BatchRecord, BatchRepair, HeldChunk, StoredBatch } from '@sluice/queue'
import type { InsertResult } from '@sluice/clickhouse'
import { AssertionError } from 'node:assert'
import { beforeEach, describe, expect, it } from 'vitest'
import type { PartsResult } from '../src/batch-splitter.ts'
import { BatchStages } from '../src/batch-stages.ts'
import {
  type Batch,
  type BatchInRepair,
  type EarlierAttempts,
  type Recovery,
  type Stage,
} from '../src/batch.ts'
import { RequeueError, Retrier, UndeliverableError } from '../src/retrier.ts'
import { WorkerEvents } from '../src/worker-events.ts'
import { insertErrors, makeChunk } from './support/chunks.ts'
import { TestClock } from './support/test-clock.ts'

const TRUSTED_MS = 15_000
const LINGER_MS = 120_000

const chunks = [makeChunk('a'), makeChunk('b')]
const batch: Batch = { id: 'B', chunks, splits: new Set() }
const repair: BatchRepair = { number: 3, splits: new Set() }
const splitRepair: BatchRepair = { number: 3, splits: new Set(['all']) }
const inRepair: BatchInRepair = { ...batch, repair: 3 }
const splitBatch: BatchInRepair = { ...inRepair, splits: new Set(['all']) }
const earlier: EarlierAttempts = { unsettledUntilMs: 7, suspension: { firstMs: 1, lastMs: 2 } }
const recovery: Recovery = { batchId: 'B', chunkIds: ['b'], isRejected: false, lastRepair: 2, earlier }
const begun: Recovery = { ...recovery, lastRepair: 3 }
const claimed: BatchRecord = { state: 'claimed', members: ['a', 'b'], splits: new Set(), repairs: 2 }

/** The recovery of the batch by a worker that has not read its record. */
const newRecovery = (isRejected: boolean, unsettledUntilMs: number): Recovery => ({
  batchId: 'B',
  chunkIds: ['a', 'b'],
  isRejected,
  lastRepair: 0,
  earlier: { unsettledUntilMs, suspension: undefined },
})

/** The stage of the batch of two rows after its rows are stored, some of them as dead letters. */
const storedAs = (repairNumber: number, deadLettered = 0): Stage => ({
  at: 'stored',
  stored: { id: 'B', members: ['a', 'b'], rows: { inserted: 2 - deadLettered, deadLettered } },
  repair: repairNumber,
})

/** The stage of the batch after it was confirmed elsewhere. */
const confirmedAs = (members: string[]): Stage => ({
  at: 'stored',
  stored: { id: 'B', members },
  repair: undefined,
})

let clock: TestClock
let stopping: AbortController
let givingUp: AbortController
/** What was called, in order. */
let calls: string[]
/** The results of the calls, in order. An error is thrown. */
let inserts: (InsertResult | Error)[]
let parts: (PartsResult | Error)[]
let records: (BatchRecord | undefined | Error)[]
let repairs: (BatchRepair | undefined | Error)[]
let loads: (HeldChunk[] | undefined | Error)[]
let finishes: (boolean | Error)[]
let stages: BatchStages
let events: WorkerEvents

/** The next result of a list. */
function next<T>(results: (T | Error)[]): T {
  if (results.length === 0) throw new Error('no result is left')
  const [result] = results.splice(0, 1)
  if (result instanceof Error) throw result
  return result as T
}

/** How often an insert was attempted. */
const attempts = (): number => calls.filter((call) => call === 'insert').length

beforeEach(() => {
  clock = new TestClock()
  stopping = new AbortController()
  givingUp = new AbortController()
  calls = []
  inserts = []
  parts = []
  records = []
  repairs = []
  loads = []
  finishes = []
  const logger = createLogger('test', 'silent')
  events = new WorkerEvents()
  stages = new BatchStages({
    events,
    shard: 4,
    ledger: {
      read: async (batchId) => {
        calls.push(`read ${batchId}`)
        return next(records)
      },
      beginRepair: async (batchId, workerId) => {
        calls.push(`begin repair ${batchId} for ${workerId}`)
        return next(repairs)
      },
    },
    consumer: {
      load: async (ids) => {
        calls.push(`load ${ids.join(' ')}`)
        return next(loads)
      },
      finish: async ({ id, members }: StoredBatch, number) => {
        calls.push(`finish ${id}: ${members.join(' ')}, repair: ${number}`)
        return next(finishes)
      },
    },
    rowInserter: {
      prepare: (frames, token, wasSent) => {
        const ids = chunks.filter(({ frame }) => frames.includes(frame)).map(({ id }) => id)
        calls.push(`prepare ${token}: ${ids.join(' ')}, sent before: ${wasSent}`)
        const run = async (): Promise<InsertResult> => {
          calls.push('insert')
          return next(inserts)
        }
        return { run } as ReturnType<ConstructorParameters<typeof BatchStages>[0]['rowInserter']['prepare']>
      },
    },
    splitter: {
      insertByParts: async ({ id }, known) => {
        calls.push(`insert ${id} by parts, unsettled until ${known.unsettledUntilMs}`)
        return next(parts)
      },
    },
    retrier: new Retrier({ logger, signal: stopping.signal, clock, random: () => 0, events }),
    health: {
      get giveUpSignal() {
        return givingUp.signal
      },
    },
    logger,
    clock,
    workerId: 'me',
    ownershipTrustedMs: TRUSTED_MS,
    insertLingerMaxMs: LINGER_MS,
  })
})

const step = (stage: Exclude<Stage, { at: 'done' }>): Promise<Stage> => clock.settle(stages.step(stage))

describe('a claimed batch', () => {
  const stage = { at: 'claimed', batch, sinceMs: 0 } as const

  it('is stored after its rows are inserted as a whole, in order, without a lookup', async () => {
    inserts = ['stored']
    expect(await step(stage)).toEqual(storedAs(0))
    expect(calls).toEqual(['prepare B: a b, sent before: false', 'insert'])
  })

  it('is inserted again after a transient error, with the attempts of the same insert', async () => {
    inserts = [insertErrors.transient, new Error('no answer'), 'stored']
    expect(await step(stage)).toMatchObject({ at: 'stored', repair: 0 })
    expect(calls).toEqual(['prepare B: a b, sent before: false', 'insert', 'insert', 'insert'])
  })

  it.each(['too_big', 'poison', 'unknown'] as const)(
    'is rejected after an error that is %s, and has no unsettled row',
    async (failure) => {
      inserts = [insertErrors[failure]]
      expect(await step(stage)).toEqual({
        at: 'recovering',
        recovery: newRecovery(true, 0),
      })
      expect(attempts()).toBe(1)
    },
  )

  it('is rejected if ClickHouse has its token without its rows', async () => {
    inserts = [insertErrors.transient, 'token-without-rows']
    expect(await step(stage)).toMatchObject({ at: 'recovering', recovery: { isRejected: true } })
  })

  it('is recovered and not sent if another worker may have it', async () => {
    await clock.pass(TRUSTED_MS + 1)
    expect(await step(stage)).toEqual({
      at: 'recovering',
      recovery: newRecovery(false, TRUSTED_MS + 1 + LINGER_MS),
    })
    expect(attempts()).toBe(0)
  })

  it('is sent for as long as it certainly belongs to this worker', async () => {
    await clock.pass(TRUSTED_MS)
    inserts = ['stored']
    expect(await step(stage)).toMatchObject({ at: 'stored' })
  })

  it('is recovered and not sent again if another worker may have it after some attempts', async () => {
    inserts = Array.from({ length: 100 }, () => insertErrors.transient)
    expect(await step(stage)).toMatchObject({ at: 'recovering', recovery: { isRejected: false } })
    expect(attempts()).toBeLessThan(20)
    expect(clock.nowMs()).toBeGreaterThan(TRUSTED_MS)
  })

  it('is returned to the queue when the worker gives up inserting', async () => {
    inserts = Array.from({ length: 100 }, () => insertErrors.transient)
    clock.after(1_000, () => givingUp.abort())
    await expect(step(stage)).rejects.toThrow(RequeueError)
    expect(clock.nowMs()).toBe(1_000)
  })
})

describe.each(['recovering', 'waiting', 'suspended'] as const)('a batch that is %s', (at) => {
  const stage = { at, recovery } as const

  beforeEach(() => {
    records = [claimed]
    repairs = [repair]
    loads = [chunks]
  })

  it('is loaded with the members of its record, in their order, under a lease', async () => {
    expect(await step(stage)).toEqual({ at: 'loaded', recovery: begun, batch: inRepair })
    expect(calls).toEqual(['read B', 'begin repair B for me', 'load a b'])
  })

  it('is rejected if it was rejected here before', async () => {
    const rejected = { ...recovery, isRejected: true }
    expect(await step({ at, recovery: rejected })).toEqual({
      at: 'rejected',
      recovery: { ...rejected, lastRepair: 3 },
      batch: inRepair,
    })
  })

  it('waits while parts of it may be in flight', async () => {
    records = [{ ...claimed, splits: new Set(['all']) }]
    await clock.pass(earlier.unsettledUntilMs - 1)
    expect(await step(stage)).toEqual({ at: 'waiting', recovery, untilMs: earlier.unsettledUntilMs })
    expect(calls).toEqual(['read B'])
  })

  it('waits for the parts of another repair that has begun since, and begins none meanwhile', async () => {
    records = [{ ...claimed, splits: new Set(['all']), repairs: 3 }]
    await clock.pass(1_000)
    const untilMs = 1_000 + LINGER_MS
    const unsettled = { ...begun, earlier: { ...earlier, unsettledUntilMs: untilMs } }
    expect(await step(stage)).toEqual({ at: 'waiting', recovery: unsettled, untilMs })
    expect(calls).toEqual(['read B'])
  })

  it('waits for the parts of another repair that began after its record was read', async () => {
    repairs = [{ ...splitRepair, number: 4 }]
    await clock.pass(1_000)
    const untilMs = 1_000 + LINGER_MS
    const unsettled = { ...recovery, lastRepair: 4, earlier: { ...earlier, unsettledUntilMs: untilMs } }
    expect(await step(stage)).toEqual({ at: 'waiting', recovery: unsettled, untilMs })
  })

  it('is rejected if it is split, whichever worker has split it', async () => {
    await clock.pass(earlier.unsettledUntilMs)
    // It was split after its record was read.
    repairs = [splitRepair]
    expect(await step(stage)).toEqual({ at: 'rejected', recovery: begun, batch: splitBatch })
  })

  it('is left to another worker that has the lease', async () => {
    repairs = [undefined]
    expect(await step(stage)).toEqual({ at: 'waiting', recovery })
    expect(calls).toEqual(['read B', 'begin repair B for me'])
  })

  it.each([
    ['is confirmed', { ...claimed, state: 'confirmed' } as const, ['a', 'b']],
    // Its members are not known any more, except for the chunks that this process holds.
    ['was released', undefined, ['b']],
  ])('is stored if its record %s', async (_what, record, members) => {
    records = [record]
    expect(await step(stage)).toEqual(confirmedAs(members))
    expect(calls).toEqual(['read B'])
  })

  it.each([{ ...claimed, state: 'confirmed' } as const, undefined])(
    'is stored if a chunk is gone and the record now is %j',
    async (now) => {
      records = [claimed, now]
      loads = [undefined]
      expect(await step(stage)).toEqual(confirmedAs(['a', 'b']))
      expect(calls).toEqual(['read B', 'begin repair B for me', 'load a b', 'read B'])
    },
  )

  it('is undeliverable if a chunk is gone and the batch is not confirmed', async () => {
    records = [claimed, claimed]
    loads = [undefined]
    await expect(step(stage)).rejects.toThrow(UndeliverableError)
  })

  it('fails if Redis fails, and is not read a second time', async () => {
    const lost = new Error('connection lost')
    records = [lost, claimed, claimed]
    repairs = [lost, repair]
    loads = [lost]
    for (let i = 0; i < 3; i += 1) await expect(step(stage)).rejects.toBe(lost)
    expect(calls).toHaveLength(1 + 2 + 3)
  })
})

describe('a loaded batch', () => {
  const stage = { at: 'loaded', recovery, batch: inRepair } as const

  it('is stored after its missing rows are inserted', async () => {
    inserts = ['stored']
    expect(await step(stage)).toEqual(storedAs(3))
    expect(calls).toEqual(['prepare B: a b, sent before: true', 'insert'])
  })

  it.each([insertErrors.too_big, insertErrors.poison, insertErrors.unknown, 'token-without-rows' as const])(
    'is rejected after %s',
    async (result) => {
      inserts = [result]
      expect(await step(stage)).toEqual({ at: 'rejected', recovery, batch: inRepair })
    },
  )

  it('fails after a transient error, without a second attempt', async () => {
    inserts = [insertErrors.transient]
    await expect(step(stage)).rejects.toBe(insertErrors.transient)
    expect(attempts()).toBe(1)
  })
})

describe('a rejected batch', () => {
  const stage = { at: 'rejected', recovery, batch: splitBatch } as const

  it('is stored with the splits that the splitter has taken into account', async () => {
    parts = [{ at: 'stored', deadLettered: 1 }]
    expect(await step(stage)).toEqual(storedAs(3, 1))
    expect(calls).toEqual(['insert B by parts, unsettled until 7'])
  })

  it('is stored if another worker has confirmed it', async () => {
    parts = [{ at: 'confirmed' }]
    expect(await step(stage)).toEqual(confirmedAs(['a', 'b']))
  })

  it('is suspended with what is known of the attempts, and stays rejected', async () => {
    const later: EarlierAttempts = { unsettledUntilMs: 9, suspension: { firstMs: 1, lastMs: 3 } }
    parts = [{ at: 'suspended', earlier: later }]
    expect(await step(stage)).toEqual({
      at: 'suspended',
      recovery: { batchId: 'B', chunkIds: ['b'], isRejected: true, lastRepair: 2, earlier: later },
    })
  })
})

describe('a stored batch', () => {
  const stage = { at: 'stored', stored: { id: 'B', members: ['a', 'b'] }, repair: 3 } as const

  it.each([3, undefined])(
    'is done after it was confirmed, completed and released (repair: %s)',
    async (repairNumber) => {
      finishes = [true]
      expect(await step({ ...stage, repair: repairNumber })).toEqual({ at: 'done' })
      expect(calls).toEqual([`finish B: a b, repair: ${repairNumber}`])
    },
  )

  it('is recovered if another repair has begun, since its insert may have been ignored', async () => {
    await clock.pass(500)
    finishes = [false]
    expect(await step(stage)).toEqual({
      at: 'recovering',
      recovery: newRecovery(false, 500 + LINGER_MS),
    })
  })

  it('is finished when Redis replies again, even if the worker has given up inserting', async () => {
    givingUp.abort()
    finishes = [new Error('connection lost'), new Error('connection lost'), true]
    expect(await step(stage)).toEqual({ at: 'done' })
    expect(calls).toHaveLength(3)
  })
})

it('a batch that is sent as a whole must have chunks, and no splits', async () => {
  for (const from of [
    { at: 'claimed', batch: { ...batch, chunks: [] }, sinceMs: 0 },
    { at: 'claimed', batch: splitBatch, sinceMs: 0 },
    { at: 'loaded', recovery, batch: splitBatch },
  ] as const)
    await expect(step(from)).rejects.toThrow(AssertionError)
  expect(calls).toEqual([])
})

it('each step has events of its beginning and its end, and of what happened to the batch', async () => {
  const seen: unknown[][] = []
  for (const event of ['step started', 'step ended', 'batch stored', 'batch finished'] as const)
    events.on(event, (...args: unknown[]) => seen.push([event, ...args]))
  const from = { at: 'claimed', batch, sinceMs: 0 } as const
  const of = { shard: 4, from, startedMs: 0 }
  inserts = [new RequeueError('stopping')]
  await expect(step(from)).rejects.toThrow('stopping')
  inserts = ['stored']
  const to = await step(from)
  expect(seen).toEqual([
    ['step started', of],
    ['step ended', of, { error: new RequeueError('stopping') }],
    ['step started', of],
    ['batch stored', batch.chunks],
    ['step ended', of, { to }],
  ])
  seen.length = 0
  finishes = [true]
  const rows = { inserted: 1, deadLettered: 1 }
  const stored = { at: 'stored', stored: { id: 'B', members: ['a', 'b'], rows }, repair: 0 } as const
  await step(stored)
  expect(seen.slice(1)).toEqual([
    ['batch finished', stored.stored],
    ['step ended', { shard: 4, from: stored, startedMs: 0 }, { to: { at: 'done' } }],
  ])
})
