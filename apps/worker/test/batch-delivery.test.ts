import { beforeEach, describe, expect, it } from 'vitest'
import { RequeueError, UndeliverableError } from '../src/retrier.ts'
import { workerLimits } from '../src/limits.ts'
import type { Stage } from '../src/batch.ts'
import { insertErrors, makeChunk } from './support/chunks.ts'
import { DeliveryFixture, type Outcome, outcomes } from './support/delivery-fixture.ts'

const { repairRetryMs, suspendedRetryMs, claimMaxMs, giveUpMs, leaseRenewalMs } = workerLimits
const [a, b, c] = [makeChunk('a'), makeChunk('b'), makeChunk('c')]
const gone = new UndeliverableError('chunks are gone')
const lost = new Error('connection lost')

let fixture: DeliveryFixture

beforeEach(() => {
  fixture = new DeliveryFixture()
})

const deliver = (...chunks: Parameters<DeliveryFixture['delivery']['deliver']>[0]): Promise<void> =>
  fixture.clock.settle(fixture.delivery.deliver(chunks))
const idle = (): Promise<void> => fixture.clock.settle(fixture.delivery.idle())
const returned = (): string[] => fixture.only('requeue', 'fail')

/** Chunks that belong to a batch of another worker. */
function own(batchId: string, ...chunkIds: readonly string[]): void {
  for (const id of chunkIds) fixture.owners.set(id, batchId)
}

/** Makes a step, given as `BATCH STAGE`, wait. @returns what ends the wait */
function hold(step: string): () => void {
  const { promise, resolve } = Promise.withResolvers<void>()
  fixture.steps.set(step, [...(fixture.steps.get(step) ?? []), outcomes.after(promise)])
  return resolve
}

describe('new chunks', () => {
  it('are claimed as one batch, which has the insert slot until its insert has ended', async () => {
    // It belongs to this worker since a time before the first attempt to claim it.
    fixture.claims.push(async () => {
      await fixture.clock.sleep(1_000)
      throw lost
    })
    const [inserted, finished] = [hold('new-1 claimed'), hold('new-1 stored')]
    let isFree = false
    const delivering = fixture.delivery.deliver([a, b]).then(() => (isFree = true))
    await fixture.clock.pass(1_500)
    expect(isFree).toBe(false)
    inserted()
    await fixture.clock.settle(delivering)
    finished()
    await idle()
    expect(fixture.calls).toEqual(['claim new-1: a b', 'claim new-1: a b'])
    expect(fixture.stepsMade).toEqual(['new-1 claimed', 'new-1 stored'])
    expect(fixture.stages[0]).toEqual({
      at: 'claimed',
      batch: { id: 'new-1', chunks: [a, b], splits: new Set() },
      sinceMs: 0,
    })
  })

  it('of other batches are recovered, once per batch', async () => {
    own('B', 'a', 'c')
    await deliver(a, b, c)
    await idle()
    expect(fixture.stages.filter(({ at }) => at === 'claimed')).toMatchObject([{ batch: { chunks: [b] } }])
    expect(fixture.stages.filter(({ at }) => at === 'recovering')).toMatchObject([
      { recovery: { batchId: 'B', chunkIds: ['a', 'c'], lastRepair: 0 } },
    ])
    expect(fixture.stepsMade).toContain('B stored')
    expect(fixture.only('forget')).toEqual([])
  })

  it.each([
    ['return to the front of the queue if the process stops before', lost, ['requeue a b to the front']],
    ['become failed jobs if the claim has a defect', new TypeError('no'), ['fail a: no', 'fail b: no']],
  ])('that are not claimed %s', async (_what, error, calls) => {
    fixture.claims.push(() => Promise.reject(error))
    fixture.clock.after(10, () => fixture.stopping.abort())
    await deliver(a, b)
    expect(returned()).toEqual(calls)
    expect(fixture.stages).toEqual([])
  })

  it('leave the insert slot if their claim is late, and are recovered, since the age of the batch is not known', async () => {
    const claim = Promise.withResolvers<void>()
    fixture.claims.push(() => claim.promise)
    own('B', 'c')
    fixture.owners.set('b', undefined)
    const repaired = hold('new-1 loaded')
    await deliver(a, b, c)
    expect(fixture.clock.nowMs()).toBe(claimMaxMs)
    let isIdle = false
    const idling = fixture.delivery.idle().then(() => (isIdle = true))
    await fixture.clock.pass(60_000)
    claim.resolve()
    await fixture.clock.pass(60_000)
    expect(isIdle).toBe(false)
    repaired()
    await fixture.clock.settle(idling)
    expect(fixture.only('forget')).toEqual(['forget b'])
    expect(fixture.stages.filter(({ at }) => at === 'claimed' || at === 'recovering')).toMatchObject([
      { at: 'recovering', recovery: { batchId: 'B', chunkIds: ['c'] } },
      { at: 'recovering', recovery: { batchId: 'new-1', chunkIds: ['a'] } },
    ])
  })
})

describe('a repair', () => {
  it('never uses the insert slot of new batches, and is the only one of its shard', async () => {
    own('B', 'a')
    own('C', 'c')
    const loaded = hold('B loaded')
    await deliver(a, b, c)
    await deliver(makeChunk('d'))
    expect(fixture.clock.nowMs()).toBe(0)
    expect(fixture.stepsMade).toEqual(expect.arrayContaining(['B loaded', 'new-1 stored', 'new-2 stored']))
    await fixture.clock.pass(60_000)
    expect(fixture.stepsMade).not.toContain('C recovering')
    loaded()
    await idle()
    expect(fixture.stepsMade).toEqual(expect.arrayContaining(['B stored', 'C stored']))
  })

  it('waits while all slots for repairs are taken by other shards', async () => {
    const taken = Promise.withResolvers<void>()
    for (let slot = 0; slot < 2; slot += 1) void fixture.repairPermits.run(() => taken.promise)
    own('B', 'a')
    await deliver(a)
    await fixture.clock.pass(60_000)
    expect(fixture.stepsMade).toEqual([])
    taken.resolve()
    await idle()
    expect(fixture.stepsMade).toEqual(['B recovering', 'B loaded', 'B stored'])
  })

  it('takes a rejected batch through its stages, and ends its lease before it is finished, or goes on', async () => {
    fixture.steps.set('new-1 claimed', [outcomes.recovering])
    fixture.steps.set('new-1 recovering', [outcomes.rejected])
    fixture.errors.set('endLease', [lost])
    // Another worker has split more of it.
    fixture.steps.set('new-1 stored', [outcomes.recovering])
    const finished = hold('new-1 stored')
    await deliver(a)
    await fixture.clock.pass(0)
    const ended = 'end lease new-1 of me'
    expect(fixture.calls).toEqual(['claim new-1: a', ended, ended])
    finished()
    await idle()
    const stages = ['claimed', 'recovering', 'rejected', 'stored', 'recovering', 'loaded', 'stored']
    expect(fixture.stages.map(({ at }) => at)).toEqual(stages)
    expect(returned()).toEqual([])
  })

  it('is counted with its held chunks from its first wait to its end', async () => {
    own('B', 'a', 'b')
    const [loaded, finished] = [hold('B loaded'), hold('new-1 stored')]
    const counts = (): number[] => [fixture.delivery.repairs, fixture.delivery.chunksInRepair]
    await deliver(a, b, c)
    await fixture.clock.pass(0)
    expect(counts()).toEqual([1, 2])
    fixture.steps.set('B recovering', [outcomes.fails(gone)])
    await deliver(a)
    loaded()
    finished()
    await idle()
    expect(counts()).toEqual([0, 0])
  })

  it('is repeated from the record a second after it failed, with what it has learned, and frees its slot meanwhile', async () => {
    own('B', 'a')
    own('C', 'b')
    fixture.steps.set('B recovering', [outcomes.rejected])
    fixture.steps.set('B rejected', [outcomes.fails(insertErrors.transient)])
    await deliver(a, b)
    await fixture.clock.pass(repairRetryMs - 1)
    expect(fixture.stepsMade).toEqual(['B recovering', 'B rejected', 'C recovering', 'C loaded', 'C stored'])
    expect(fixture.only('end lease B')).toHaveLength(1)
    await idle()
    expect(fixture.clock.nowMs()).toBe(repairRetryMs)
    expect(fixture.stages[5]).toMatchObject({ at: 'waiting', recovery: { rejection: new Error('rejected') } })
    expect(fixture.only('end lease B')).toHaveLength(2)
  })

  it('renews its lease while it lasts', async () => {
    own('B', 'a')
    const loaded = hold('B loaded')
    await deliver(a)
    await fixture.clock.pass(3 * leaseRenewalMs)
    loaded()
    await idle()
    await fixture.clock.pass(3 * leaseRenewalMs)
    expect(fixture.only('renew lease B')).toHaveLength(3)
  })

  const unsettled: Outcome = (stage) => ({ ...outcomes.waiting(stage), untilMs: 50 * repairRetryMs }) as Stage

  it.each<[when: string, outcome: Outcome, waitMs: number]>([
    ['another worker repairs its batch', outcomes.waiting, repairRetryMs],
    ['earlier attempts are not settled', unsettled, 50 * repairRetryMs],
    ['ClickHouse rejects single rows, and accepts others', outcomes.suspended, suspendedRetryMs],
  ])('is made later if %s, and frees its slot meanwhile', async (_when, outcome, waitMs) => {
    own('B', 'a')
    own('C', 'b')
    fixture.succeededAtMs = 0
    fixture.steps.set('B recovering', [outcome])
    await deliver(a, b)
    await fixture.clock.pass(waitMs - 1)
    expect(fixture.stepsMade).toEqual(['B recovering', 'C recovering', 'C loaded', 'C stored'])
    await idle()
    expect(fixture.clock.nowMs()).toBe(waitMs)
    expect(fixture.stepsMade.slice(5)).toEqual(['B loaded', 'B stored'])
  })
})

describe('a suspended batch', () => {
  beforeEach(async () => {
    own('B', 'a')
    fixture.steps.set('B recovering', [outcomes.suspended])
    await fixture.clock.pass(giveUpMs + 1)
    fixture.succeededAtMs = 0
  })

  it('returns behind all other chunks if ClickHouse has accepted no rows since shortly before the attempt', async () => {
    await deliver(a)
    await idle()
    expect(returned()).toEqual(['requeue a to the back'])
    expect(fixture.clock.nowMs()).toBe(giveUpMs + 1 + suspendedRetryMs)
  })

  it.each([
    ['shortly before', () => (fixture.succeededAtMs = 1)],
    ['during the wait', () => fixture.clock.after(1, () => (fixture.succeededAtMs = fixture.clock.nowMs()))],
  ])('stays if ClickHouse accepts rows %s', async (_when, accept) => {
    accept()
    await deliver(a)
    await idle()
    expect(returned()).toEqual([])
  })
})

it('a batch in flight is not delivered again before the end of its delivery, and then with what is known', async () => {
  own('B', 'a', 'b', 'c')
  const finishes = [hold('B stored'), hold('B stored')]
  const at = outcomes.after(Promise.resolve())
  fixture.steps.set('B loaded', [at, at, outcomes.fails(gone)])
  const knownAtMs = (): number[] =>
    fixture.stages.flatMap((its) => (its.at === 'recovering' ? its.recovery.unsettledUntilMs : []))
  await deliver(a)
  await deliver(b)
  await fixture.clock.pass(5_000)
  expect(knownAtMs()).toEqual([0])
  finishes[0]?.()
  await fixture.clock.pass(0)
  // The first one has ended, and the second one is still running.
  await deliver(c)
  await fixture.clock.pass(0)
  expect(knownAtMs()).toEqual([0, 5_000])
  finishes[1]?.()
  await idle()
  expect(knownAtMs()).toEqual([0, 5_000, 5_000])
  expect(returned()).toEqual(['fail c: chunks are gone'])
})

describe('a worker that gives up inserting', () => {
  it('returns the batches that wait for a repair, when it could begin', async () => {
    own('B', 'a')
    own('C', 'b')
    const loaded = hold('B loaded')
    await deliver(a, b)
    await fixture.clock.pass(0)
    fixture.givingUp.abort()
    loaded()
    await idle()
    expect(fixture.stepsMade).toEqual(['B recovering', 'B loaded', 'B stored'])
    expect(returned()).toEqual(['requeue b to the front'])
  })

  it('returns the batches that wait before a retry at once', async () => {
    own('B', 'a')
    fixture.steps.set('B recovering', [outcomes.fails(insertErrors.transient)])
    await deliver(a)
    fixture.clock.after(100, () => fixture.givingUp.abort())
    await idle()
    expect(fixture.clock.nowMs()).toBe(100)
    expect(fixture.stepsMade).toEqual(['B recovering'])
    expect(returned()).toEqual(['requeue a to the back'])
  })

  it('makes one attempt for a batch that it fetches as a probe, or more if another insert succeeds meanwhile', async () => {
    fixture.givingUp.abort()
    own('B', 'a')
    const fails = outcomes.fails(insertErrors.transient)
    const recovers: Outcome = (stage) => {
      fixture.givingUp = new AbortController()
      return fails(stage)
    }
    fixture.steps.set('B loaded', [fails, recovers])
    await deliver(a)
    await idle()
    expect(fixture.stepsMade).toEqual(['B recovering', 'B loaded'])
    expect(returned()).toEqual(['requeue a to the back'])
    await deliver(a)
    await idle()
    expect(fixture.stepsMade.at(-1)).toBe('B stored')
    expect(returned()).toHaveLength(1)
  })
})

it.each([
  ['the process stops', () => fixture.stopping.abort(new RequeueError('stopping'))],
  ['the shard closes', () => void fixture.delivery.close()],
])(
  'when %s, batches that wait return to the queue at once, and the repair in its slot ends',
  async (what, stop) => {
    for (const [batch, chunk] of [
      ['B', 'a'],
      ['C', 'b'],
      ['D', 'c'],
    ] as const)
      own(batch, chunk)
    fixture.steps.set('B recovering', [outcomes.waiting])
    const loaded = hold('C loaded')
    await deliver(a, b, c)
    await fixture.clock.pass(0)
    stop()
    await fixture.clock.pass(0)
    // While a shard closes, its repairs still begin.
    const atOnce = what === 'the process stops' ? ['a', 'c'] : ['a']
    expect(returned().toSorted()).toEqual(atOnce.map((id) => `requeue ${id} to the front`))
    loaded()
    await idle()
    expect(fixture.stepsMade).toContain('C stored')
  },
)

it.each([
  ['the queue', 'requeue', new RequeueError('stopping'), ['requeue a b to the front', 'forget a b']],
  ['the failed jobs', 'fail', gone, ['fail a: chunks are gone', 'forget a b']],
] as const)(
  'chunks that cannot be returned to %s are left to the stalled check',
  async (_where, request, error, calls) => {
    fixture.errors.set(request, [lost])
    fixture.steps.set('new-1 claimed', [outcomes.fails(error)])
    await deliver(a, b)
    await idle()
    expect(fixture.only('requeue', 'fail', 'forget')).toEqual(calls)
  },
)
