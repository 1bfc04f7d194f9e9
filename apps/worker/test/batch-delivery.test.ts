import { AssertionError } from 'node:assert'
import { beforeEach, describe, expect, it } from 'vitest'
import { RequeueError, UndeliverableError } from '../src/retrier.ts'
import { workerLimits } from '../src/limits.ts'
import type { Stage } from '../src/batch.ts'
import { insertErrors, makeChunk } from './support/chunks.ts'
import { DeliveryFixture, type Outcome, outcomes } from './support/delivery-fixture.ts'

const { repairRetryMs, suspendedRetryMs, claimMaxMs, giveUpMs, leaseRenewalMs } = workerLimits
const [a, b, c] = [makeChunk('a'), makeChunk('b'), makeChunk('c')]
/** Never resolves. */
const never = new Promise<never>(() => undefined)

let fixture: DeliveryFixture

beforeEach(() => {
  fixture = new DeliveryFixture()
})

const deliver = (...chunks: Parameters<DeliveryFixture['delivery']['deliver']>[0]): Promise<void> =>
  fixture.clock.settle(fixture.delivery.deliver(chunks))
const idle = (): Promise<void> => fixture.clock.settle(fixture.delivery.idle())

/** Chunks that belong to a batch of another worker. */
function own(batchId: string, ...chunkIds: readonly string[]): void {
  for (const id of chunkIds) fixture.owners.set(id, batchId)
}

describe('new chunks', () => {
  it('are claimed as one batch, inserted and finished', async () => {
    await fixture.clock.pass(500)
    await deliver(a, b)
    await idle()
    expect(fixture.calls).toEqual(['claim new-1: a b'])
    expect(fixture.stages[0]).toEqual({
      at: 'claimed',
      batch: { id: 'new-1', chunks: [a, b], splits: new Set() },
      sinceMs: 500,
    })
    expect(fixture.stepsMade).toEqual(['new-1 claimed', 'new-1 stored'])
  })

  it('belong to this worker since a time before the first attempt to claim them', async () => {
    fixture.claims.push(async () => {
      await fixture.clock.sleep(1_000)
      throw new Error('connection lost')
    })
    await deliver(a)
    expect(fixture.calls).toEqual(['claim new-1: a', 'claim new-1: a'])
    expect(fixture.stages[0]).toMatchObject({ sinceMs: 0 })
  })

  it('have the insert slot until their insert has ended, and not until they are finished', async () => {
    const [inserted, finished] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    fixture.steps.set('new-1 claimed', [outcomes.after(inserted.promise)])
    fixture.steps.set('new-1 stored', [outcomes.after(finished.promise)])
    let isFree = false
    const delivering = fixture.delivery.deliver([a]).then(() => (isFree = true))
    await fixture.clock.pass(1)
    expect(isFree).toBe(false)
    inserted.resolve()
    await fixture.clock.settle(delivering)
    expect(fixture.stepsMade).toEqual(['new-1 claimed', 'new-1 stored'])
    finished.resolve()
    await idle()
  })

  it('without an owner are forgotten, because they were delivered earlier', async () => {
    fixture.owners.set('a', undefined)
    await deliver(a, b)
    await idle()
    expect(fixture.only('forget')).toEqual(['forget a'])
    expect(fixture.stages[0]).toMatchObject({ at: 'claimed', batch: { chunks: [b] } })
  })

  it('of other batches are recovered, once per batch', async () => {
    own('B', 'a', 'c')
    await deliver(a, b, c)
    await idle()
    expect(fixture.stages.filter(({ at }) => at === 'claimed')).toMatchObject([{ batch: { chunks: [b] } }])
    expect(fixture.stages.filter(({ at }) => at === 'recovering')).toEqual([
      {
        at: 'recovering',
        recovery: {
          batchId: 'B',
          chunkIds: ['a', 'c'],
          isRejected: false,
          lastRepair: 0,
          earlier: { unsettledUntilMs: 0, suspension: undefined },
        },
      },
    ])
    expect(fixture.stepsMade).toContain('B stored')
    expect(fixture.only('forget')).toEqual([])
  })

  it('are returned to the front of the queue if the process stops before they are claimed', async () => {
    fixture.claims.push(() => Promise.reject(new Error('connection lost')))
    fixture.clock.after(10, () => fixture.stopping.abort())
    await deliver(a, b)
    expect(fixture.only('requeue', 'fail')).toEqual(['requeue a b to the front'])
    expect(fixture.stages).toEqual([])
  })

  it('become failed jobs if the claim has a defect', async () => {
    fixture.claims.push(() => Promise.reject(new TypeError('x is not a function')))
    await deliver(a, b)
    expect(fixture.only('requeue', 'fail')).toEqual([
      'fail a: x is not a function',
      'fail b: x is not a function',
    ])
  })
})

it('the batch of each chunk is logged if the level is debug', async () => {
  fixture = new DeliveryFixture(undefined, 'debug')
  fixture.owners.set('c', undefined)
  await deliver(a, b, c)
  await idle()
  expect(fixture.debugLines.mock.calls).toEqual([
    [{ batchId: 'new-1', chunkIds: ['a', 'b'] }, 'chunks of a batch'],
    [{ batchId: undefined, chunkIds: ['c'] }, 'chunks were stored earlier'],
  ])
})

describe('a claim that is late', () => {
  it('leaves the insert slot, and its batch is recovered, since its age is not known', async () => {
    const claim = Promise.withResolvers<void>()
    fixture.claims.push(() => claim.promise)
    own('B', 'c')
    await deliver(a, b, c)
    expect(fixture.clock.nowMs()).toBe(claimMaxMs)
    expect(fixture.stages).toEqual([])
    claim.resolve()
    await idle()
    expect(fixture.stepsMade.filter((step) => /claimed|recovering/.test(step))).toEqual([
      'B recovering',
      'new-1 recovering',
    ])
    expect(fixture.stages).toContainEqual(
      expect.objectContaining({ recovery: expect.objectContaining({ chunkIds: ['a', 'b'] }) }),
    )
  })

  it('of chunks that are not new makes no batch', async () => {
    const claim = Promise.withResolvers<void>()
    fixture.claims.push(() => claim.promise)
    fixture.owners.set('a', undefined)
    await deliver(a)
    claim.resolve()
    await idle()
    expect(fixture.stages).toEqual([])
    expect(fixture.only('forget')).toEqual(['forget a'])
  })

  it('is a part of the work that `idle` waits for, and so is the repair of its batch', async () => {
    const [claim, repaired] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    fixture.claims.push(() => claim.promise)
    fixture.steps.set('new-1 loaded', [outcomes.after(repaired.promise)])
    await deliver(a)
    let isIdle = false
    const idling = fixture.delivery.idle().then(() => (isIdle = true))
    await fixture.clock.pass(60_000)
    expect(isIdle).toBe(false)
    claim.resolve()
    await fixture.clock.pass(60_000)
    expect(isIdle).toBe(false)
    repaired.resolve()
    await fixture.clock.settle(idling)
    expect(fixture.stepsMade.at(-1)).toBe('new-1 stored')
  })
})

describe('a repair', () => {
  it('never uses the insert slot of new batches', async () => {
    own('B', 'a')
    fixture.steps.set('B loaded', [outcomes.after(never)])
    await deliver(a, b)
    await deliver(c)
    expect(fixture.clock.nowMs()).toBe(0)
    expect(fixture.stepsMade).toEqual(expect.arrayContaining(['new-1 stored', 'new-2 stored']))
  })

  it('takes a rejected batch through the stages of the table, and ends its lease before it is finished', async () => {
    fixture.steps.set('new-1 claimed', [outcomes.recovering])
    fixture.steps.set('new-1 recovering', [outcomes.rejected])
    let callsAtFinish: string[] = []
    fixture.steps.set('new-1 stored', [
      () => {
        callsAtFinish = [...fixture.calls]
        return { at: 'done' }
      },
    ])
    await deliver(a)
    await idle()
    expect(fixture.stepsMade).toEqual(['new-1 claimed', 'new-1 recovering', 'new-1 rejected', 'new-1 stored'])
    expect(callsAtFinish).toEqual(['claim new-1: a', 'end lease new-1 of me'])
  })

  it('is the only one of its shard', async () => {
    own('B', 'a')
    own('C', 'b')
    const loaded = Promise.withResolvers<void>()
    fixture.steps.set('B loaded', [outcomes.after(loaded.promise)])
    await deliver(a, b)
    await fixture.clock.pass(60_000)
    expect(fixture.stepsMade).toEqual(['B recovering', 'B loaded'])
    loaded.resolve()
    await idle()
    expect(fixture.stepsMade).toEqual(expect.arrayContaining(['B stored', 'C stored']))
  })

  it('waits while all slots for repairs are taken by other shards', async () => {
    const taken = Promise.withResolvers<void>()
    void fixture.repairPermits.run(() => taken.promise)
    const other = new DeliveryFixture(fixture.repairPermits)
    for (const { owners } of [fixture, other]) owners.set('a', 'B')
    fixture.steps.set('B loaded', [outcomes.after(never)])
    await fixture.delivery.deliver([a])
    await fixture.clock.pass(0)
    await other.delivery.deliver([a])
    await other.clock.pass(60_000)
    expect(fixture.stepsMade).toEqual(['B recovering', 'B loaded'])
    expect(other.stepsMade).toEqual([])
    taken.resolve()
    await other.clock.settle(other.delivery.idle())
    expect(other.stepsMade).toEqual(['B recovering', 'B loaded', 'B stored'])
  })

  it('is counted with its held chunks from its first wait to its end', async () => {
    own('B', 'a', 'b')
    const [loaded, finished] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    fixture.steps.set('B loaded', [outcomes.after(loaded.promise)])
    fixture.steps.set('new-1 stored', [outcomes.after(finished.promise)])
    const counts = (): number[] => [fixture.delivery.repairs, fixture.delivery.chunksInRepair]
    await deliver(a, b, c)
    await fixture.clock.pass(0)
    expect(counts()).toEqual([1, 2])
    loaded.resolve()
    finished.resolve()
    await idle()
    expect(counts()).toEqual([0, 0])
    fixture.steps.set('B recovering', [outcomes.fails(new UndeliverableError('gone'))])
    await deliver(a, b)
    await idle()
    expect(counts()).toEqual([0, 0])
  })

  it('is repeated from the record a second after it failed, with what it has learned, and frees its slot meanwhile', async () => {
    own('B', 'a')
    own('C', 'b')
    fixture.steps.set('B recovering', [outcomes.rejected])
    fixture.steps.set('B rejected', [outcomes.fails(insertErrors.transient)])
    await deliver(a, b)
    await fixture.clock.pass(0)
    expect(fixture.stepsMade).toEqual(['B recovering', 'B rejected', 'C recovering', 'C loaded', 'C stored'])
    expect(fixture.only('end lease B')).toHaveLength(1)
    expect(fixture.warnings.mock.calls).toEqual([
      [{ batchId: 'B', reason: 'ClickHouse 252 TOO_MANY_PARTS' }, 'batch not repaired'],
    ])
    await fixture.clock.pass(repairRetryMs - 1)
    expect(fixture.stages).toHaveLength(5)
    await idle()
    expect(fixture.clock.nowMs()).toBe(repairRetryMs)
    expect(fixture.stages[5]).toMatchObject({ at: 'waiting', recovery: { isRejected: true } })
    expect(fixture.only('end lease B')).toHaveLength(2)
  })

  it('renews its lease while it lasts', async () => {
    own('B', 'a')
    const loaded = Promise.withResolvers<void>()
    fixture.steps.set('B loaded', [outcomes.after(loaded.promise)])
    await deliver(a)
    await fixture.clock.pass(3 * leaseRenewalMs)
    expect(fixture.only('renew lease B')).toHaveLength(3)
    loaded.resolve()
    await idle()
    await fixture.clock.pass(3 * leaseRenewalMs)
    expect(fixture.only('renew lease B')).toHaveLength(3)
  })

  it('that waits is returned when the worker stops', async () => {
    own('B', 'a')
    fixture.steps.set('B recovering', [outcomes.waiting])
    await deliver(a)
    await fixture.clock.pass(0)
    await fixture.delivery.close()
    expect(fixture.clock.nowMs()).toBe(0)
    expect(fixture.only('requeue', 'fail')).toEqual(['requeue a to the front'])
  })

  it.each<[when: string, outcome: Outcome, waitMs: number]>([
    ['another worker repairs its batch', outcomes.waiting, repairRetryMs],
    [
      'earlier attempts are not settled',
      (stage) => ({ ...outcomes.waiting(stage), untilMs: 50 * repairRetryMs }) as Stage,
      50 * repairRetryMs,
    ],
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

  it('goes on if its lease cannot be ended', async () => {
    own('B', 'a')
    fixture.errors.set('endLease', [new Error('connection lost')])
    await deliver(a)
    await idle()
    expect(fixture.stepsMade.at(-1)).toBe('B stored')
    expect(fixture.only('requeue', 'fail')).toEqual([])
  })

  it('is repeated if another worker has split more of the batch when it is finished', async () => {
    own('B', 'a')
    fixture.steps.set('B stored', [outcomes.recovering])
    fixture.steps.set('new-1 stored', [outcomes.recovering])
    await deliver(a, b)
    await idle()
    for (const id of ['B', 'new-1'])
      expect(fixture.stepsMade.filter((step) => step === `${id} stored`)).toHaveLength(2)
    expect(fixture.clock.nowMs()).toBeLessThanOrEqual(2 * repairRetryMs)
  })

  it.each([
    new UndeliverableError('chunks are gone'),
    new TypeError('x is not a function'),
    new AssertionError({ message: 'broken' }),
  ])('that no attempt can make leads to failed jobs: %s', async (error) => {
    own('B', 'a', 'b')
    fixture.steps.set('B loaded', [outcomes.fails(error)])
    await deliver(a, b)
    await idle()
    expect(fixture.only('requeue', 'fail', 'end lease')).toEqual([
      'end lease B of me',
      `fail a: ${error.message}`,
      `fail b: ${error.message}`,
    ])
  })
})

describe('a suspended batch', () => {
  beforeEach(async () => {
    own('B', 'a')
    fixture.steps.set('B recovering', [outcomes.suspended])
    await fixture.clock.pass(giveUpMs)
    fixture.succeededAtMs = 0
  })

  it('returns behind all other chunks if ClickHouse has accepted no rows since shortly before the attempt', async () => {
    await fixture.clock.pass(1)
    await deliver(a)
    await idle()
    expect(fixture.only('requeue', 'fail')).toEqual(['requeue a to the back'])
    expect(fixture.clock.nowMs()).toBe(giveUpMs + 1 + suspendedRetryMs)
  })

  it('stays if ClickHouse accepts rows during the wait', async () => {
    fixture.succeededAtMs = Number.NEGATIVE_INFINITY
    fixture.clock.after(suspendedRetryMs / 2, () => (fixture.succeededAtMs = fixture.clock.nowMs()))
    await deliver(a)
    await idle()
    expect(fixture.only('requeue', 'fail')).toEqual([])
  })
})

describe('a batch that is in flight', () => {
  it('is delivered again after its delivery, and the chunks of both are settled', async () => {
    own('B', 'a', 'b')
    fixture.steps.set('B loaded', [outcomes.fails(new UndeliverableError('chunks are gone'))])
    await deliver(a)
    await deliver(b)
    await idle()
    expect(fixture.stepsMade).toEqual(['B recovering', 'B loaded', 'B recovering', 'B loaded', 'B stored'])
    expect(fixture.only('fail')).toEqual(['fail a: chunks are gone'])
  })

  it('is never delivered twice at the same time', async () => {
    own('B', 'a', 'b', 'c')
    const finishes = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    fixture.steps.set(
      'B stored',
      finishes.map(({ promise }) => outcomes.after(promise)),
    )
    const rounds = (): number => fixture.stepsMade.filter((step) => step === 'B recovering').length
    await deliver(a)
    await deliver(b)
    await fixture.clock.pass(0)
    expect(rounds()).toBe(1)
    finishes[0]?.resolve()
    await fixture.clock.pass(0)
    expect(rounds()).toBe(2)
    // The first one has ended, and the second one is still running.
    await deliver(c)
    await fixture.clock.pass(0)
    expect(rounds()).toBe(2)
    finishes[1]?.resolve()
    await idle()
    expect(rounds()).toBe(3)
  })

  it('is recovered with what is known when its recovery begins, and not when it was fetched', async () => {
    own('B', 'a', 'b')
    const loaded = Promise.withResolvers<void>()
    fixture.steps.set('B loaded', [outcomes.after(loaded.promise)])
    await deliver(a)
    await deliver(b)
    await fixture.clock.pass(5_000)
    loaded.resolve()
    await idle()
    expect(fixture.stages.filter(({ at }) => at === 'recovering')).toMatchObject([
      { recovery: { earlier: { unsettledUntilMs: 0 } } },
      { recovery: { earlier: { unsettledUntilMs: 5_000 } } },
    ])
  })
})

describe('a worker that gives up inserting', () => {
  it('returns the batches that wait for a repair, when it could begin', async () => {
    own('B', 'a')
    own('C', 'b')
    const loaded = Promise.withResolvers<void>()
    fixture.steps.set('B loaded', [outcomes.after(loaded.promise)])
    await deliver(a, b)
    await fixture.clock.pass(0)
    fixture.givingUp.abort()
    loaded.resolve()
    await idle()
    expect(fixture.stepsMade).toEqual(['B recovering', 'B loaded', 'B stored'])
    expect(fixture.only('requeue', 'fail')).toEqual(['requeue b to the front'])
  })

  it.each([outcomes.waiting, outcomes.suspended, outcomes.fails(insertErrors.transient)])(
    'returns the batches that wait before a retry at once',
    async (outcome) => {
      fixture.succeededAtMs = 0
      own('B', 'a')
      fixture.steps.set('B recovering', [outcome])
      await deliver(a)
      fixture.clock.after(100, () => fixture.givingUp.abort())
      await idle()
      expect(fixture.clock.nowMs()).toBe(100)
      expect(fixture.stepsMade).toEqual(['B recovering'])
      expect(fixture.only('requeue', 'fail')).toEqual(['requeue a to the back'])
    },
  )

  it('makes one attempt for each batch that it fetches as a probe', async () => {
    fixture.givingUp.abort()
    own('B', 'a')
    fixture.steps.set('B loaded', [outcomes.fails(insertErrors.transient)])
    await deliver(a)
    await idle()
    expect(fixture.stepsMade).toEqual(['B recovering', 'B loaded'])
    expect(fixture.only('requeue', 'fail')).toEqual(['requeue a to the back'])
    await deliver(a)
    await idle()
    expect(fixture.stepsMade.slice(2)).toEqual(['B recovering', 'B loaded', 'B stored'])
    expect(fixture.clock.nowMs()).toBe(0)
  })

  it('goes on with a probe if another insert has succeeded meanwhile', async () => {
    fixture.givingUp.abort()
    own('B', 'a')
    fixture.steps.set('B loaded', [
      (stage) => {
        fixture.givingUp = new AbortController()
        return outcomes.fails(insertErrors.transient)(stage)
      },
    ])
    await deliver(a)
    await idle()
    expect(fixture.only('requeue', 'fail')).toEqual([])
    expect(fixture.stepsMade.at(-1)).toBe('B stored')
  })
})

describe('when the process stops', () => {
  it('batches that wait for a repair or before a retry return to the queue at once', async () => {
    own('B', 'a')
    own('C', 'b')
    const loaded = Promise.withResolvers<void>()
    fixture.steps.set('C loaded', [outcomes.after(loaded.promise)])
    fixture.steps.set('B recovering', [outcomes.waiting])
    own('D', 'c')
    await deliver(a, b, c)
    await fixture.clock.pass(0)
    fixture.stopping.abort(new RequeueError('stopping'))
    await fixture.clock.pass(0)
    expect(fixture.only('requeue').toSorted()).toEqual(['requeue a to the front', 'requeue c to the front'])
    loaded.resolve()
    await idle()
    expect(fixture.stepsMade.at(-1)).toBe('C stored')
  })
})

it.each([
  ['the queue', 'requeue', new RequeueError('stopping'), ['requeue a b to the front', 'forget a b']],
  ['the failed jobs', 'fail', new UndeliverableError('no'), ['fail a: no', 'forget a b']],
] as const)(
  'chunks that cannot be returned to %s are left to the stalled check',
  async (_where, request, error, calls) => {
    fixture.errors.set(request, [new Error('connection lost')])
    fixture.steps.set('new-1 claimed', [outcomes.fails(error)])
    await deliver(a, b)
    await idle()
    expect(fixture.only('requeue', 'fail', 'forget')).toEqual(calls)
    expect(fixture.warnings).toHaveBeenCalledWith(
      { err: new Error('connection lost'), chunks: 2 },
      'chunks left to the stalled check',
    )
  },
)
