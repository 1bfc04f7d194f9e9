import { beforeEach, describe, expect, it } from 'vitest'
import { workerLimits } from '../src/limits.ts'
import { BATCH_CHUNKS_MAX, limits, ShardFixture, WAIT_MS } from './support/shard-fixture.ts'

let fixture: ShardFixture

beforeEach(() => {
  fixture = new ShardFixture()
})

/** Starts the shard, and lets time pass. */
async function run(ms: number): Promise<void> {
  fixture.start()
  await fixture.clock.pass(ms)
}

describe('a round', () => {
  it.each<[interval: string, prepare: () => unknown, intervalMs: number]>([
    ['the idle interval while nothing is waiting', () => undefined, limits.idleIntervalMs],
    [
      'the short interval while chunks arrive',
      () => (fixture.beforeFetch = () => void fixture.add(1)),
      limits.intervalMs,
    ],
    [
      'a longer interval while another worker has the turn',
      () => (fixture.isTurnTaken = true),
      limits.standbyIntervalMs,
    ],
  ])('follows after %s', async (_interval, prepare, intervalMs) => {
    prepare()
    await run(2 * intervalMs)
    expect(fixture.fetchedAtMs).toEqual([0, intervalMs, 2 * intervalMs])
  })

  it('follows at once if more chunks are waiting', async () => {
    fixture.add(2 * limits.chunksPerRoundMax + 1)
    await run(0)
    expect(fixture.only('fetch')).toEqual(['fetch 3', 'fetch 3', 'fetch 3'])
  })

  it('does not follow at once if nothing may be fetched', async () => {
    fixture.add(1)
    fixture.room.chunks = 0
    await run(limits.idleIntervalMs)
    expect(fixture.fetchedAtMs).toEqual([0, limits.idleIntervalMs])
  })

  it('follows after a round that failed', async () => {
    fixture.add(1)
    let fails = true
    fixture.beforeFetch = () => {
      if (fails) throw new Error('OOM')
    }
    await run(limits.failedIntervalMs)
    fails = false
    expect(fixture.fetchedAtMs).toEqual([0, 700])
    await fixture.clock.pass(limits.failedIntervalMs + WAIT_MS)
    expect(fixture.only('deliver')).toEqual(['deliver 1'])
  })

  it('is not repeated when the shard wakes for another reason', async () => {
    fixture.add(1)
    await run(WAIT_MS + limits.intervalMs)
    // The chunk was delivered in between, at 50 ms.
    expect(fixture.only('deliver')).toHaveLength(1)
    expect(fixture.fetchedAtMs).toEqual([0, 20])
  })
})

describe('the number of chunks that are fetched', () => {
  it.each([
    ['the limit per round', () => undefined, limits.chunksPerRoundMax],
    ['the room of the shard', () => (fixture.room.chunks = 2), 2],
    ['none without room for bytes', () => (fixture.room.bytes = 0), 0],
    [
      'none with many batches in repair',
      () => (fixture.delivery.repairs = workerLimits.repairsWaitingMax),
      0,
    ],
    ['not limited by fewer', () => (fixture.delivery.repairs = workerLimits.repairsWaitingMax - 1), 3],
    ['none with many chunks in repair', () => (fixture.delivery.chunksInRepair = workerLimits.chunksMax), 0],
    ['not limited by fewer chunks', () => (fixture.delivery.chunksInRepair = workerLimits.chunksMax - 1), 3],
  ])('is %s', async (_which, prepare, count) => {
    prepare()
    await run(0)
    // Another worker that has room may take the turn from a worker that has none.
    expect(fixture.calls).toEqual([count === 0 ? 'fetch 0, busy' : `fetch ${count}`])
  })

  it('depends on the held chunks of all shards', async () => {
    await run(0)
    expect(fixture.heldInAllShards).toBe(7)
  })
})

describe('collected chunks', () => {
  it('are one batch when the first one has waited long enough', async () => {
    fixture.add(1)
    await run(limits.intervalMs)
    fixture.add(1)
    await fixture.clock.pass(WAIT_MS - limits.intervalMs - 1)
    expect(fixture.only('deliver')).toEqual([])
    await fixture.clock.pass(1)
    expect(fixture.only('deliver')).toEqual(['deliver 1'])
    await fixture.clock.pass(1_000)
    expect(fixture.only('deliver')).toEqual(['deliver 1', 'deliver 2'])
  })

  it('are delivered at once if they make a full batch, and the rest follows in time', async () => {
    fixture = new ShardFixture(2)
    fixture.add(2 * BATCH_CHUNKS_MAX + 1)
    await run(0)
    expect(fixture.only('deliver')).toEqual(['deliver 1 2 3 4', 'deliver 5 6 7 8'])
    await fixture.clock.pass(WAIT_MS)
    expect(fixture.only('deliver').slice(2)).toEqual(['deliver 9'])
  })

  it('grow while no insert slot is free, and are taken when one is', async () => {
    const freeSlot = fixture.takeSlot()
    fixture.add(1)
    await run(WAIT_MS)
    fixture.add(1)
    await fixture.clock.pass(500)
    expect(fixture.only('deliver')).toEqual([])
    expect(fixture.slotsWanted).toBe(1)
    freeSlot()
    await fixture.clock.pass(0)
    expect(fixture.only('deliver')).toEqual(['deliver 1 2'])
  })

  it('mark the turn as busy while they wait for an insert slot, and not during the insert', async () => {
    const freeSlot = fixture.takeSlot()
    fixture.whileDelivering = () => new Promise(() => undefined)
    fixture.add(1)
    await run(WAIT_MS)
    fixture.calls.length = 0
    await fixture.clock.pass(100)
    expect(fixture.only('fetch')).toEqual(['fetch 3, busy'])
    freeSlot()
    await fixture.clock.pass(100)
    expect(fixture.calls.slice(-2)).toEqual(['deliver 1', 'fetch 3'])
  })

  it('use several insert slots at the same time', async () => {
    fixture = new ShardFixture(2)
    const ends = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const running = [...ends]
    fixture.whileDelivering = () => running.shift()?.promise ?? Promise.resolve()
    fixture.add(3 * BATCH_CHUNKS_MAX)
    await run(1_000)
    expect(fixture.only('deliver')).toEqual(['deliver 1 2 3 4', 'deliver 5 6 7 8'])
    ends[1]?.resolve()
    await fixture.clock.pass(0)
    expect(fixture.only('deliver')).toHaveLength(3)
  })

  it('use the next free slot at once if they make more than one batch', async () => {
    fixture = new ShardFixture(2)
    const freeSlots = [fixture.takeSlot(), fixture.takeSlot()]
    fixture.whileDelivering = () => new Promise(() => undefined)
    fixture.add(2 * BATCH_CHUNKS_MAX)
    await run(10)
    for (const freeSlot of freeSlots) freeSlot()
    await fixture.clock.pass(0)
    expect(fixture.only('deliver')).toEqual(['deliver 1 2 3 4', 'deliver 5 6 7 8'])
  })

  it('count in the shares of the shard until they are delivered', async () => {
    const chunks = fixture.add(2)
    const delivered = Promise.withResolvers<void>()
    fixture.whileDelivering = () => delivered.promise
    const bytes = chunks.reduce((sum, { frame }) => sum + frame.length, 0)
    await run(0)
    expect(fixture.held).toEqual({ chunks: 2, bytes })
    await fixture.clock.pass(WAIT_MS)
    expect(fixture.only('deliver')).toHaveLength(1)
    expect(fixture.held).toEqual({ chunks: 2, bytes })
    delivered.resolve()
    await fixture.clock.pass(0)
    expect(fixture.held).toEqual({ chunks: 0, bytes: 0 })
  })
})

describe('a worker whose inserts fail', () => {
  beforeEach(() => {
    fixture.fetchMax = 0
  })

  it('fetches nothing, and lets others take the turn', async () => {
    fixture.add(1)
    await run(limits.standbyIntervalMs)
    expect(fixture.calls).toEqual(['fetch 0, busy', 'fetch 0, busy'])
    expect(fixture.fetchedAtMs).toEqual([0, limits.standbyIntervalMs])
  })

  it('fetches one chunk as a probe, and delivers it', async () => {
    fixture.fetchMax = 1
    fixture.add(2)
    await run(0)
    expect(fixture.calls).toEqual(['probing', 'fetch 1, busy'])
    fixture.fetchMax = 0
    await fixture.clock.pass(limits.idleIntervalMs)
    expect(fixture.only('deliver')).toEqual(['deliver 1'])
    expect(fixture.fetchedAtMs).toEqual([0, limits.idleIntervalMs])
    expect(fixture.only('insert nothing')).toEqual([])
  })

  it.each([false, true])(
    'inserts nothing as a probe if it gets no chunk (another worker has the turn: %s)',
    async (isTurnTaken) => {
      fixture.fetchMax = 1
      fixture.isTurnTaken = isTurnTaken
      fixture.errors.set('insert nothing', new Error('connection lost'))
      const intervalMs = isTurnTaken ? limits.standbyIntervalMs : limits.idleIntervalMs
      await run(intervalMs)
      const probe = ['probing', 'fetch 1, busy', 'insert nothing']
      expect(fixture.calls).toEqual([...probe, ...probe])
    },
  )
})

describe('a worker that gives up inserting', () => {
  it('returns what it has collected to the front of the queue, and delivers nothing of it', async () => {
    const freeSlot = fixture.takeSlot()
    fixture.add(2)
    await run(WAIT_MS)
    fixture.givingUp.abort()
    fixture.fetchMax = 0
    await fixture.clock.pass(limits.standbyIntervalMs)
    freeSlot()
    await fixture.clock.pass(limits.standbyIntervalMs)
    expect(fixture.only('requeue', 'deliver', 'forget')).toEqual(['requeue 1 2 to the front'])
    expect(fixture.held).toEqual({ chunks: 0, bytes: 0 })
  })

  it('delivers what it fetches as a probe, and returns chunks again only after it has recovered', async () => {
    fixture.givingUp.abort()
    fixture.fetchMax = 1
    fixture.add(1)
    await run(limits.idleIntervalMs)
    expect(fixture.only('requeue', 'deliver')).toEqual(['deliver 1'])
    fixture.givingUp = new AbortController()
    fixture.fetchMax = Number.POSITIVE_INFINITY
    await fixture.clock.pass(limits.idleIntervalMs)
    fixture.add(1)
    await fixture.clock.pass(limits.idleIntervalMs)
    fixture.givingUp.abort()
    fixture.fetchMax = 0
    await fixture.clock.pass(limits.intervalMs)
    expect(fixture.only('requeue', 'deliver')).toEqual(['deliver 1', 'requeue 2 to the front'])
  })

  it('collects a probe although the chunks that waited for an insert slot are returned', async () => {
    const freeSlot = fixture.takeSlot()
    fixture.add(1)
    await run(WAIT_MS)
    fixture.givingUp.abort()
    fixture.fetchMax = 1
    fixture.add(1)
    await fixture.clock.pass(limits.intervalMs + limits.idleIntervalMs - WAIT_MS)
    fixture.fetchMax = 0
    freeSlot()
    await fixture.clock.pass(limits.standbyIntervalMs)
    expect(fixture.only('requeue', 'deliver')).toEqual(['requeue 1 to the front', 'deliver 2'])
  })

  it('leaves chunks that it cannot return to the stalled check', async () => {
    fixture.errors.set('requeue', new Error('connection lost'))
    fixture.add(2)
    await run(0)
    fixture.givingUp.abort()
    await fixture.clock.pass(limits.intervalMs)
    expect(fixture.only('requeue', 'forget')).toEqual(['requeue 1 2 to the front', 'forget 1 2'])
  })
})

describe('stop', () => {
  it('delivers what is collected without waiting for more, and fetches no more', async () => {
    const shard = fixture.start()
    fixture.add(1)
    await fixture.clock.pass(0)
    fixture.add(1)
    await fixture.clock.settle(shard.stop())
    expect(fixture.clock.nowMs()).toBe(0)
    expect(fixture.calls).toEqual(['fetch 3', 'deliver 1'])
  })

  it('resolves at once if there is nothing to deliver', async () => {
    fixture.isTurnTaken = true
    const shard = fixture.start()
    await fixture.clock.pass(10)
    await fixture.clock.settle(shard.stop())
    expect(fixture.clock.nowMs()).toBe(10)
  })

  it('delivers what a fetch returns that is still running', async () => {
    const answered = Promise.withResolvers<void>()
    fixture.add(1)
    fixture.beforeFetch = () => answered.promise
    const shard = fixture.start()
    await fixture.clock.pass(10)
    const stopped = shard.stop()
    answered.resolve()
    await fixture.clock.settle(stopped)
    expect(fixture.calls).toEqual(['fetch 3', 'deliver 1'])
  })

  it.each([
    ['the last delivery has ended', 5_002, 5_001],
    ['no repair is left', 5_001, 5_002],
  ])('resolves as soon as %s, and fetches nothing meanwhile', async (_what, deliveredAtMs, idleAtMs) => {
    const [delivered, idle] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    fixture.whileDelivering = () => delivered.promise
    fixture.isIdle = idle.promise
    fixture.add(1)
    const shard = fixture.start()
    await fixture.clock.pass(0)
    let isStopped = false
    const stopped = shard.stop().then(() => (isStopped = true))
    fixture.clock.after(deliveredAtMs, delivered.resolve)
    fixture.clock.after(idleAtMs, idle.resolve)
    await fixture.clock.pass(5_001)
    expect(isStopped).toBe(false)
    await fixture.clock.settle(stopped)
    expect(fixture.clock.nowMs()).toBe(5_002)
    expect(fixture.fetchedAtMs).toEqual([0])
  })

  it('resolves at once if the worker has given up, and its chunks are returned', async () => {
    fixture.takeSlot()
    fixture.add(1)
    const shard = fixture.start()
    await fixture.clock.pass(0)
    fixture.givingUp.abort()
    await fixture.clock.settle(shard.stop())
    expect(fixture.clock.nowMs()).toBe(0)
    expect(fixture.only('requeue', 'deliver')).toEqual(['requeue 1 to the front'])
  })

  it('returns what is collected if the process stops before an insert slot is free', async () => {
    fixture.takeSlot()
    fixture.add(2)
    const shard = fixture.start()
    await fixture.clock.pass(0)
    const stopped = shard.stop()
    fixture.clock.after(3_001, () => fixture.stopping.abort())
    await fixture.clock.settle(stopped)
    expect(fixture.clock.nowMs()).toBe(3_001)
    expect(fixture.only('requeue', 'deliver')).toEqual(['requeue 1 2 to the front'])
    expect(fixture.held).toEqual({ chunks: 0, bytes: 0 })
  })
})

it('returns what a fetch returns that is still running when the process stops without a free slot', async () => {
  const answered = Promise.withResolvers<void>()
  fixture.takeSlot()
  fixture.add(1)
  const shard = fixture.start()
  await fixture.clock.pass(WAIT_MS - 1)
  fixture.beforeFetch = () => answered.promise
  await fixture.clock.pass(limits.idleIntervalMs)
  const stopped = shard.stop()
  fixture.add(1)
  fixture.stopping.abort()
  await fixture.clock.pass(0)
  expect(fixture.only('requeue')).toEqual(['requeue 1 to the front'])
  answered.resolve()
  await fixture.clock.settle(stopped)
  expect(fixture.only('requeue', 'deliver')).toEqual(['requeue 1 to the front', 'requeue 2 to the front'])
})
