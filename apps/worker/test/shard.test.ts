import { rowKey } from '@sluice/rows'
import { beforeEach, describe, expect, it } from 'vitest'
import { workerLimits } from '../src/limits.ts'
import { makeChunk } from './support/chunks.ts'
import { BATCH_CHUNKS_MAX, limits, ShardFixture, WAIT_MS } from './support/shard-fixture.ts'

const { idleIntervalMs, intervalMs, standbyIntervalMs, failedIntervalMs, chunksPerRoundMax } = limits
const never = new Promise<never>(() => undefined)

let fixture: ShardFixture

beforeEach(() => {
  fixture = new ShardFixture()
})

/** Starts the shard, and lets time pass. */
async function run(ms: number): Promise<void> {
  fixture.start()
  await fixture.clock.pass(ms)
}
const delivered = (): string[] => fixture.only('deliver')
const returnedOrDelivered = (): string[] => fixture.only('requeue', 'deliver')

describe('a round', () => {
  it.each<[when: string, prepare: () => unknown, waitMs: number]>([
    ['after the idle interval while nothing is waiting', () => undefined, idleIntervalMs],
    // Deliveries, which wake the shard, do not repeat a round.
    [
      'after the short one while chunks arrive',
      () => (fixture.beforeFetch = () => void fixture.add(1)),
      intervalMs,
    ],
    [
      'after a longer one while another worker has the turn',
      () => (fixture.isTurnTaken = true),
      standbyIntervalMs,
    ],
    [
      'after the idle interval if it may fetch nothing',
      () => [fixture.add(1), (fixture.room.chunks = 0)],
      idleIntervalMs,
    ],
    [
      'after a round that failed',
      () => (fixture.beforeFetch = () => Promise.reject(new Error('OOM'))),
      failedIntervalMs,
    ],
  ])('follows %s', async (_when, prepare, waitMs) => {
    prepare()
    await run(4 * waitMs)
    expect(fixture.fetchedAtMs).toEqual([0, 1, 2, 3, 4].map((round) => round * waitMs))
  })

  it('follows at once if more chunks are waiting', async () => {
    fixture.add(2 * chunksPerRoundMax + 1)
    await run(0)
    expect(fixture.only('fetch')).toEqual(['fetch 3', 'fetch 3', 'fetch 3'])
  })
})

it.each([
  ['the limit per round', () => undefined, chunksPerRoundMax],
  ['the room of the shard', () => (fixture.room.chunks = 2), 2],
  ['none without room for bytes', () => (fixture.room.bytes = 0), 0],
  ['none with many batches in repair', () => (fixture.delivery.repairs = workerLimits.repairsWaitingMax), 0],
  ['none with many chunks in repair', () => (fixture.delivery.chunksInRepair = workerLimits.chunksMax), 0],
])('the number of chunks that are fetched is %s', async (_which, prepare, count) => {
  prepare()
  await run(0)
  // Another worker that has room may take the turn from a worker that has none.
  expect(fixture.calls).toEqual([count === 0 ? 'fetch 0, busy' : `fetch ${count}`])
  expect(fixture.heldInAllShards).toBe(7)
})

describe('collected chunks', () => {
  it('are one batch when the first one has waited long enough', async () => {
    fixture.add(1)
    await run(intervalMs)
    fixture.add(1)
    await fixture.clock.pass(WAIT_MS - intervalMs - 1)
    expect(delivered()).toEqual([])
    await fixture.clock.pass(1)
    expect(delivered()).toEqual(['deliver 1'])
    await fixture.clock.pass(1_000)
    expect(delivered()).toEqual(['deliver 1', 'deliver 2'])
  })

  it('of projects with rejected rows are a batch of their own, after the others', async () => {
    fixture.rejectedProjects.note([rowKey('q')])
    fixture.waiting.push(makeChunk('q', ['q\t\n']), makeChunk('p'))
    await run(WAIT_MS)
    expect(delivered()).toEqual(['deliver p', 'deliver q'])
  })

  it('are delivered at once if they make a full batch, as many as there are slots, and the rest follows in time', async () => {
    fixture = new ShardFixture(2)
    const freeSlots = [fixture.takeSlot(), fixture.takeSlot()]
    const first = Promise.withResolvers<void>()
    const inserts = [first.promise, never]
    fixture.whileDelivering = () => inserts.shift() ?? Promise.resolve()
    fixture.add(2 * BATCH_CHUNKS_MAX + 1)
    await run(10)
    for (const freeSlot of freeSlots) freeSlot()
    await fixture.clock.pass(WAIT_MS)
    expect(delivered()).toEqual(['deliver 1 2 3 4', 'deliver 5 6 7 8'])
    first.resolve()
    await fixture.clock.pass(0)
    expect(delivered().slice(2)).toEqual(['deliver 9'])
  })

  it('grow and mark the turn as busy while no insert slot is free, and not during the insert', async () => {
    const freeSlot = fixture.takeSlot()
    fixture.whileDelivering = () => never
    fixture.add(1)
    await run(WAIT_MS)
    fixture.add(1)
    await fixture.clock.pass(500)
    expect(delivered()).toEqual([])
    expect(fixture.slotsWanted).toBe(1)
    expect(fixture.calls.at(-1)).toBe('fetch 3, busy')
    freeSlot()
    await fixture.clock.pass(100)
    expect(fixture.calls.slice(-2)).toEqual(['deliver 1 2', 'fetch 3'])
  })

  it('count in the shares of the shard until they are delivered', async () => {
    const bytes = fixture.add(2).reduce((sum, { frame }) => sum + frame.length, 0)
    const inserted = Promise.withResolvers<void>()
    fixture.whileDelivering = () => inserted.promise
    await run(WAIT_MS)
    expect(delivered()).toHaveLength(1)
    expect(fixture.held).toEqual({ chunks: 2, bytes })
    inserted.resolve()
    await fixture.clock.pass(0)
    expect(fixture.held).toEqual({ chunks: 0, bytes: 0 })
  })
})

describe('a worker whose inserts fail', () => {
  it('fetches nothing, and lets others take the turn', async () => {
    fixture.fetchMax = 0
    fixture.add(1)
    await run(standbyIntervalMs)
    expect(fixture.calls).toEqual(['fetch 0, busy', 'fetch 0, busy'])
    expect(fixture.fetchedAtMs).toEqual([0, standbyIntervalMs])
  })

  it.each([
    ['one chunk', 1, false, idleIntervalMs],
    ['an insert of nothing if it gets no chunk', 0, false, idleIntervalMs],
    ['an insert of nothing if another worker has the turn', 1, true, standbyIntervalMs],
  ])('makes a probe: %s', async (_what, waiting, isTurnTaken, nextMs) => {
    fixture.fetchMax = 1
    fixture.add(waiting)
    fixture.isTurnTaken = isTurnTaken
    fixture.errors.set('insert nothing', new Error('connection lost'))
    await run(nextMs - 1)
    const isChunk = waiting === 1 && !isTurnTaken
    expect(fixture.calls).toEqual(['probing', 'fetch 1, busy', isChunk ? 'deliver 1' : 'insert nothing'])
    await fixture.clock.pass(1)
    expect(fixture.fetchedAtMs).toEqual([0, nextMs])
  })
})

const giveUp = (fetchMax: number): void => {
  fixture.givingUp.abort()
  fixture.fetchMax = fetchMax
}

describe('a worker that gives up inserting', () => {
  it('returns what it has collected to the front of the queue, or leaves it to the stalled check', async () => {
    const freeSlot = fixture.takeSlot()
    fixture.errors.set('requeue', new Error('connection lost'))
    fixture.add(2)
    await run(WAIT_MS)
    giveUp(0)
    await fixture.clock.pass(standbyIntervalMs)
    freeSlot()
    await fixture.clock.pass(standbyIntervalMs)
    expect(fixture.only('requeue', 'deliver', 'forget')).toEqual(['requeue 1 2 to the front', 'forget 1 2'])
    expect(fixture.held).toEqual({ chunks: 0, bytes: 0 })
  })

  it('delivers nothing in an insert slot that becomes free because its inserts have failed', async () => {
    const freeSlot = fixture.takeSlot()
    fixture.add(2)
    await run(WAIT_MS)
    giveUp(0)
    freeSlot()
    await fixture.clock.pass(standbyIntervalMs)
    expect(returnedOrDelivered()).toEqual(['requeue 1 2 to the front'])
  })

  it('delivers what it fetches as a probe, and returns chunks again only after it has recovered', async () => {
    giveUp(1)
    fixture.add(1)
    await run(idleIntervalMs)
    expect(returnedOrDelivered()).toEqual(['deliver 1'])
    fixture.givingUp = new AbortController()
    fixture.fetchMax = Number.POSITIVE_INFINITY
    await fixture.clock.pass(idleIntervalMs)
    fixture.add(1)
    await fixture.clock.pass(idleIntervalMs)
    giveUp(0)
    await fixture.clock.pass(intervalMs)
    expect(returnedOrDelivered()).toEqual(['deliver 1', 'requeue 2 to the front'])
  })

  it('collects a probe although the chunks that waited for an insert slot are returned', async () => {
    const freeSlot = fixture.takeSlot()
    fixture.add(1)
    await run(WAIT_MS)
    giveUp(1)
    fixture.add(1)
    await fixture.clock.pass(intervalMs + idleIntervalMs - WAIT_MS)
    fixture.fetchMax = 0
    freeSlot()
    await fixture.clock.pass(standbyIntervalMs)
    expect(returnedOrDelivered()).toEqual(['requeue 1 to the front', 'deliver 2'])
  })
})

describe('stop', () => {
  it('delivers what is collected, and what a fetch returns that is still running, without waiting for more', async () => {
    fixture = new ShardFixture(2)
    const shard = fixture.start()
    fixture.add(1)
    await fixture.clock.pass(10)
    const answered = Promise.withResolvers<void>()
    fixture.beforeFetch = () => answered.promise
    fixture.add(1)
    await fixture.clock.pass(intervalMs)
    const stopped = shard.stop()
    answered.resolve()
    await fixture.clock.settle(stopped)
    expect(fixture.clock.nowMs()).toBe(10 + intervalMs)
    expect(fixture.calls).toEqual(['fetch 3', 'fetch 3', 'deliver 1 2'])
  })

  it.each([
    ['the last delivery has ended', 5_002, 5_001],
    ['no repair is left', 5_001, 5_002],
  ])('resolves as soon as %s, and fetches nothing meanwhile', async (_what, deliveredAtMs, idleAtMs) => {
    const [last, idle] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    fixture.whileDelivering = () => last.promise
    fixture.isIdle = idle.promise
    fixture.add(1)
    const shard = fixture.start()
    await fixture.clock.pass(0)
    fixture.clock.after(deliveredAtMs, last.resolve)
    fixture.clock.after(idleAtMs, idle.resolve)
    await fixture.clock.settle(shard.stop())
    expect(fixture.clock.nowMs()).toBe(5_002)
    expect(fixture.fetchedAtMs).toEqual([0])
  })

  it.each([
    ['the worker has given up', () => fixture.givingUp.abort(), 0],
    ['the process stops', () => fixture.clock.after(3_001, () => fixture.stopping.abort()), 3_001],
  ])('returns what is collected without a free insert slot when %s', async (_what, end, endsAtMs) => {
    fixture.takeSlot()
    fixture.add(2)
    const shard = fixture.start()
    await fixture.clock.pass(0)
    end()
    await fixture.clock.settle(shard.stop())
    expect(fixture.clock.nowMs()).toBe(endsAtMs)
    expect(returnedOrDelivered()).toEqual(['requeue 1 2 to the front'])
    expect(fixture.held).toEqual({ chunks: 0, bytes: 0 })
  })

  it('returns what a fetch returns that is still running when the process stops without a free slot', async () => {
    const answered = Promise.withResolvers<void>()
    fixture.takeSlot()
    fixture.add(1)
    const shard = fixture.start()
    await fixture.clock.pass(WAIT_MS - 1)
    fixture.beforeFetch = () => answered.promise
    await fixture.clock.pass(idleIntervalMs)
    const stopped = shard.stop()
    fixture.add(1)
    fixture.stopping.abort()
    await fixture.clock.pass(0)
    expect(returnedOrDelivered()).toEqual(['requeue 1 to the front'])
    answered.resolve()
    await fixture.clock.settle(stopped)
    expect(returnedOrDelivered()).toEqual(['requeue 1 to the front', 'requeue 2 to the front'])
  })
})
