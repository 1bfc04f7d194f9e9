import { TokenWithoutRowsError } from '@sluice/clickhouse'
import { createLogger } from '@sluice/runtime'
import type { BatchRecord, BatchRepair } from '@sluice/queue'
import { beforeEach, describe, expect, it } from 'vitest'
import { BatchStages, type BatchStagesDependencies } from '../src/batch-stages.ts'
import type { Batch, BatchInRepair, Recovery, Stage } from '../src/batch.ts'
import { workerLimits } from '../src/limits.ts'
import { RequeueError, Retrier, UndeliverableError } from '../src/retrier.ts'
import { WorkerEvents } from '../src/worker-events.ts'
import { insertErrors, makeChunk } from './support/chunks.ts'
import { TestClock } from './support/test-clock.ts'

// test/simulator removes the guards of the stages one by one, and finds out what is lost or doubled.

const TRUSTED_MS = 15_000
const LINGER_MS = workerLimits.insertLingerMaxMs

const chunks = [makeChunk('a'), makeChunk('b')]
const members = ['a', 'b']
const splits = new Set(['all'])
const batch: Batch = { id: 'B', chunks, splits: new Set() }
const repair: BatchRepair = { number: 3, splits: new Set() }
const inRepair: BatchInRepair = { ...batch, repair: 3 }
const splitBatch: BatchInRepair = { ...inRepair, splits }
const recovery: Recovery = {
  batchId: 'B',
  chunkIds: ['b'],
  lastRepair: 2,
  unsettledUntilMs: 7,
  suspension: { firstMs: 1, lastMs: 2 },
}
const begun: Recovery = { ...recovery, lastRepair: 3 }
const record: BatchRecord = { state: 'claimed', members, splits: new Set(), repairs: 2 }
const confirmedRecord: BatchRecord = { ...record, state: 'confirmed' }
const noAnswer = new Error('no answer')

/** The recovery of the batch by a worker that has not read its record. */
const recovering = (unsettledUntilMs: number, rejection?: Error): Stage => ({
  at: 'recovering',
  recovery: {
    batchId: 'B',
    chunkIds: members,
    lastRepair: 0,
    unsettledUntilMs,
    ...(rejection && { rejection }),
  },
})
/** The stage of the batch of two rows after its rows are stored, some of them as dead letters. */
const storedAs = (repairNumber: number, deadLettered = 0): Stage => ({
  at: 'stored',
  stored: { id: 'B', members, rows: { inserted: 2 - deadLettered, deadLettered } },
  repair: repairNumber,
})
/** The stage of the batch after it was confirmed elsewhere. */
const confirmedAs = (its: string[]): Stage => ({
  at: 'stored',
  stored: { id: 'B', members: its },
  repair: undefined,
})

type OpenStage = Exclude<Stage, { at: 'done' }>
const claimed: OpenStage = { at: 'claimed', batch, sinceMs: 0 }
const toLoad: OpenStage = { at: 'recovering', recovery }
const loaded: OpenStage = { at: 'loaded', recovery, batch: inRepair }
const rejected: OpenStage = { at: 'rejected', recovery, batch: splitBatch }
const stored = { at: 'stored', stored: { id: 'B', members }, repair: 3 } as const

let clock: TestClock
let givingUp: AbortController
/** What was called, in order. */
let calls: string[]
/** The results of the calls to each dependency, in order. An error is thrown. */
let results: Partial<Record<'insert' | 'parts' | 'read' | 'repair' | 'load' | 'finish', readonly unknown[]>>
let stages: BatchStages
let events: WorkerEvents

async function reply(name: keyof typeof results, call: string): Promise<never> {
  calls.push(call)
  const [result, ...others] = results[name] ?? []
  // The last error is not removed.
  if (others.length > 0 || !(result instanceof Error)) results = { ...results, [name]: others }
  if (result instanceof Error) throw result
  return result as never
}

/** An attempt to insert. Without a response from ClickHouse, it may still commit. */
const attemptOf = (onUnanswered?: () => void) => ({
  run: () =>
    reply('insert', 'insert').catch((error: unknown) => {
      if (error === noAnswer) onUnanswered?.()
      throw error
    }),
})

beforeEach(() => {
  clock = new TestClock()
  givingUp = new AbortController()
  calls = []
  results = {}
  const logger = createLogger('test', 'silent')
  events = new WorkerEvents()
  const { signal } = new AbortController()
  stages = new BatchStages({
    events,
    shard: 4,
    ledger: {
      read: (batchId) => reply('read', `read ${batchId}`),
      beginRepair: (batchId, workerId) => reply('repair', `begin repair ${batchId} for ${workerId}`),
    },
    consumer: {
      load: (ids) => reply('load', `load ${ids.join(' ')}`),
      finish: (its, number) =>
        reply('finish', `finish ${its.id}: ${its.members.join(' ')}, repair: ${number}`),
    },
    rowInserter: {
      prepare: (frames, token, wasSent, onUnanswered) => {
        const ids = chunks.filter(({ frame }) => frames.includes(frame)).map(({ id }) => id)
        calls.push(`prepare ${token}: ${ids.join(' ')}, sent before: ${wasSent}`)
        return attemptOf(onUnanswered) as Partial<
          ReturnType<BatchStagesDependencies['rowInserter']['prepare']>
        > as never
      },
    },
    insertByParts: ({ id }, known) =>
      reply('parts', `insert ${id} by parts, unsettled until ${known.unsettledUntilMs}`),
    retrier: new Retrier({ logger, signal, clock, random: () => 0, events }),
    health: {
      get giveUpSignal() {
        return givingUp.signal
      },
    },
    logger,
    clock,
    workerId: 'me',
    config: { LOCK_DURATION_MS: 2 * TRUSTED_MS },
  })
})

const step = (stage: OpenStage): Promise<Stage> => clock.settle(stages.step(stage))
const attempts = (): number => calls.filter((call) => call === 'insert').length

type Results = typeof results
const read = 'read B'
const load = [read, 'begin repair B for me', 'load a b']
const loadable: Results = { read: [record], repair: [repair], load: [chunks] }
const wasRejected = { ...recovery, rejection: insertErrors.poison }
const settled = { ...recovery, unsettledUntilMs: 0 }
/** The parts of another repair may be in flight. */
const waitingFor = (lastRepair: number): Stage => ({
  at: 'waiting',
  recovery: { ...recovery, lastRepair, unsettledUntilMs: LINGER_MS },
  untilMs: LINGER_MS,
})
const suspended: Stage = { at: 'suspended', recovery: { ...recovery, suspension: { firstMs: 1, lastMs: 3 } } }
const claimedAgo = (ms: number): OpenStage => ({ at: 'claimed', batch, sinceMs: -ms })
const newPrepared = 'prepare B: a b, sent before: false'
const preparedAgain = 'prepare B: a b, sent before: true'
const byParts = 'insert B by parts, unsettled until 7'
const { transient } = insertErrors
const withoutRows = new TokenWithoutRowsError('B')

type Row = [what: string, from: OpenStage, results: Results, to: Stage, calls?: readonly string[]]

const ofClaimed: Row[] = [
  ['that is new, without a lookup', claimed, { insert: ['stored'] }, storedAs(0), [newPrepared, 'insert']],
  ['after transient errors', claimed, { insert: [transient, noAnswer, 'stored'] }, storedAs(0)],
  ['whose rows its token lacks', claimed, { insert: [transient, withoutRows] }, recovering(0, withoutRows)],
  [
    'that may still commit',
    claimed,
    { insert: [noAnswer, insertErrors.poison] },
    recovering(LINGER_MS, insertErrors.poison),
  ],
  ['that certainly belongs to it', claimedAgo(TRUSTED_MS), { insert: ['stored'] }, storedAs(0)],
  ['that may belong to another', claimedAgo(TRUSTED_MS + 1), {}, recovering(LINGER_MS), [newPrepared]],
]
const ofRecovering: Row[] = [
  [
    'to be repaired, under a lease',
    toLoad,
    loadable,
    { at: 'loaded', recovery: begun, batch: inRepair },
    load,
  ],
  [
    'that was rejected here before',
    { at: 'waiting', recovery: wasRejected },
    loadable,
    { at: 'rejected', recovery: { ...wasRejected, lastRepair: 3 }, batch: inRepair },
  ],
  [
    'that was split after its record was read',
    { at: 'suspended', recovery: settled },
    { ...loadable, repair: [{ number: 3, splits }] },
    { at: 'rejected', recovery: { ...settled, lastRepair: 3 }, batch: splitBatch },
  ],
  [
    'whose parts may be in flight',
    toLoad,
    { read: [{ ...record, splits }] },
    { at: 'waiting', recovery, untilMs: recovery.unsettledUntilMs },
    [read],
  ],
  [
    'that another repair splits',
    toLoad,
    { read: [{ ...record, splits, repairs: 3 }] },
    waitingFor(3),
    [read],
  ],
  ['that a later one splits', toLoad, { ...loadable, repair: [{ number: 4, splits }] }, waitingFor(4)],
  ['whose lease is taken', toLoad, { read: [record] }, { at: 'waiting', recovery }, load.slice(0, 2)],
  ['that is confirmed', toLoad, { read: [confirmedRecord] }, confirmedAs(members), [read]],
  // Its members are not known any more, except for the chunks that this process holds.
  ['that was released', toLoad, {}, confirmedAs(['b']), [read]],
  [
    'that is confirmed now',
    toLoad,
    { ...loadable, read: [record, confirmedRecord], load: [] },
    confirmedAs(members),
  ],
  ['that is released now', toLoad, { ...loadable, load: [] }, confirmedAs(members), [...load, read]],
]
const ofOthers: Row[] = [
  ['with missing rows', loaded, { insert: ['stored'] }, storedAs(3), [preparedAgain, 'insert']],
  [
    'that may still commit, too',
    loaded,
    { insert: [noAnswer] },
    { at: 'waiting', recovery: { ...recovery, unsettledUntilMs: LINGER_MS } },
  ],
  ['with dead letters', rejected, { parts: [{ at: 'stored', deadLettered: 1 }] }, storedAs(3, 1), [byParts]],
  ['that is confirmed meanwhile', rejected, { parts: [{ at: 'confirmed' }] }, confirmedAs(members)],
  ['with suspects', rejected, { parts: [suspended] }, suspended],
  ['that is stored', stored, { finish: [true] }, { at: 'done' }, ['finish B: a b, repair: 3']],
  // Its insert may have been ignored.
  ['that another repair has', stored, { finish: [false] }, recovering(LINGER_MS)],
]

it.each<Row>([...ofClaimed, ...ofRecovering, ...ofOthers])(
  'the next stage is right for a batch %s',
  async (_what, from, its, to, expected) => {
    results = its
    expect(await step(from)).toMatchObject(to)
    expect(calls).toEqual(expected ?? calls)
  },
)

describe.each(['too_big', 'poison', 'unknown'] as const)('an error that is %s', (failure) => {
  it('rejects a batch, and leaves no unsettled row', async () => {
    results = { insert: [insertErrors[failure]] }
    expect(await step(claimed)).toMatchObject(recovering(0, insertErrors[failure]))
    results = { insert: [insertErrors[failure]] }
    expect(await step(loaded)).toMatchObject({ at: 'rejected', recovery, batch: inRepair })
    expect(attempts()).toBe(2)
  })
})

describe('a new batch that is rejected again and again', () => {
  beforeEach(() => (results = { insert: [insertErrors.transient] }))

  it('is recovered and not sent again if another worker may have it', async () => {
    const to = await step(claimed)
    expect(attempts()).toBeLessThan(20)
    expect(clock.nowMs()).toBeGreaterThan(TRUSTED_MS)
    expect(to).toEqual(recovering(clock.nowMs() + LINGER_MS))
  })

  it('is returned to the queue when the worker gives up inserting', async () => {
    clock.after(1_000, () => givingUp.abort())
    await expect(step(claimed)).rejects.toThrow(RequeueError)
    expect(clock.nowMs()).toBe(1_000)
  })
})

it('a batch is undeliverable if a chunk is gone and the batch is not confirmed', async () => {
  results = { read: [record, record], repair: [repair] }
  await expect(step(toLoad)).rejects.toThrow(UndeliverableError)
})

it('a repair fails after an error of Redis or ClickHouse, without a second attempt', async () => {
  for (const failing of [
    { read: [noAnswer] },
    { read: [record], repair: [noAnswer] },
    { read: [record], repair: [repair], load: [noAnswer] },
  ]) {
    results = failing
    await expect(step(toLoad)).rejects.toBe(noAnswer)
  }
  expect(calls).toHaveLength(1 + 2 + 3)
  results = { insert: [insertErrors.transient] }
  await expect(step(loaded)).rejects.toBe(insertErrors.transient)
  expect(attempts()).toBe(1)
})

it('a stored batch is finished when Redis replies again, even if the worker has given up inserting', async () => {
  givingUp.abort()
  results = { finish: [noAnswer] }
  clock.after(10_000, () => (results = { finish: [true] }))
  expect(await step(stored)).toEqual({ at: 'done' })
})

it('each step has events of its beginning and its end, and of what happened to the batch', async () => {
  const seen: unknown[][] = []
  for (const event of ['step started', 'step ended', 'batch stored', 'batch finished'] as const)
    events.on(event, (...args: unknown[]) => seen.push([event, ...args]))
  const of = { shard: 4, from: claimed, startedMs: 0 }
  results = { insert: [new RequeueError('stopping')] }
  await expect(step(claimed)).rejects.toThrow('stopping')
  results = { insert: ['stored'], finish: [true] }
  const to = await step(claimed)
  await step(stored)
  expect(seen).toEqual([
    ['step started', of],
    ['step ended', of, { error: new RequeueError('stopping') }],
    ['step started', of],
    ['batch stored', batch.chunks],
    ['step ended', of, { to }],
    ['step started', { ...of, from: stored }],
    ['batch finished', stored.stored],
    ['step ended', { ...of, from: stored }, { to: { at: 'done' } }],
  ])
})
