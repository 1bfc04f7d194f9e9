import { CONFIRMED_TTL_S } from '@sluice/queue'
import { describe, expect, it } from 'vitest'
import { RELEASED_TTL_S } from '../../packages/queue/src/batch-ledger.ts'
import { chunkOf, useTestRedis } from '../../packages/queue/test/support/consumer-fixture.ts'
import { LOCK_MS, RealScripts, RENEWED_LOCK_MS, SimulatedScripts } from './queue-scripts.ts'
import { ADD_WITHIN_MS, BATCH, MARGIN_MS, Workers } from './scenario-workers.ts'

const RELEASED_MS = RELEASED_TTL_S * 1_000
const CONFIRMED_MS = CONFIRMED_TTL_S * 1_000

/** Runs steps, and returns their answers. */
type Scenario = (workers: Workers) => Promise<readonly unknown[]>

const adds: Readonly<Record<string, Scenario>> = {
  'a chunk that is added twice is queued once': async (workers) => {
    await workers.add('a', 'b', 'a')
    return [await workers.left()]
  },
  'a chunk that is added again while a worker has it stays with that worker': async (workers) => {
    await workers.add('a')
    await workers.fetch('w1', 1)
    await workers.add('a')
    return [await workers.left()]
  },
  'a chunk that is added again after it was finished is queued': async (workers) => {
    const ids = await workers.claimed('w1', 'a')
    await workers.finish('w1', ids, 0)
    await workers.add('a')
    return [await workers.left()]
  },
  'a chunk that is added again after it failed stays a failed job': async (workers) => {
    await workers.add('a')
    await workers.fetch('w1', 1)
    await workers.fail('w1', 'a')
    await workers.add('a')
    return [await workers.left()]
  },
  'an add after its deadline stores nothing': async (workers) => [
    await workers.scripts.add('a', chunkOf('a\n'), ADD_WITHIN_MS),
    await workers.scripts.add('b', chunkOf('b\n'), -MARGIN_MS),
    await workers.left(),
  ],
}

const fetches: Readonly<Record<string, Scenario>> = {
  'a fetch returns the oldest chunks in order, and whether there are more': async (workers) => {
    await workers.add('a', 'b', 'c', 'd')
    return [
      await workers.fetch('w1', 0),
      await workers.fetch('w1', 2),
      await workers.fetch('w1', 1),
      await workers.fetch('w1', 1),
      await workers.fetch('w1', 1),
      await workers.fetch('w1', 0),
    ]
  },
  'a worker that is not busy keeps the turn from all others': async (workers) => {
    await workers.add('a', 'b')
    return [
      await workers.fetch('w1', 1),
      await workers.fetch('w2', 1),
      await workers.fetch('w2', 1, true),
      await workers.left(),
    ]
  },
  'a worker takes the turn of a busy one if it is not busy itself': async (workers) => {
    await workers.add('a', 'b', 'c')
    return [
      await workers.fetch('w1', 1, true),
      await workers.fetch('w2', 1, true),
      await workers.fetch('w2', 1),
      await workers.fetch('w1', 1, true),
      await workers.fetch('w1', 1),
    ]
  },
  'a worker that becomes busy has the turn, and loses it': async (workers) => [
    await workers.fetch('w1', 1),
    await workers.fetch('w1', 1, true),
    await workers.fetch('w2', 1, true),
    await workers.fetch('w2', 1),
  ],
  'a turn expires': async (workers) => {
    await workers.fetch('w1', 1)
    await workers.scripts.pass(4_000)
    const before = await workers.fetch('w2', 1)
    await workers.scripts.pass(2_000)
    return [before, await workers.fetch('w2', 1), await workers.fetch('w1', 1)]
  },
  'a fetch renews a turn when less than half of its time is left': async (workers) => {
    await workers.fetch('w1', 1)
    await workers.scripts.pass(3_500)
    await workers.fetch('w1', 0)
    await workers.scripts.pass(4_000)
    return [await workers.fetch('w2', 1)]
  },
  'a fetch leaves a turn unchanged when more than half of its time is left': async (workers) => {
    await workers.fetch('w1', 1)
    await workers.scripts.pass(1_500)
    await workers.fetch('w1', 0)
    await workers.scripts.pass(4_000)
    return [await workers.fetch('w2', 1)]
  },
  'a fetch of a worker that becomes busy renews its turn': async (workers) => {
    await workers.fetch('w1', 1)
    await workers.scripts.pass(1_500)
    await workers.fetch('w1', 0, true)
    await workers.scripts.pass(4_000)
    return [await workers.fetch('w2', 1, true)]
  },
  'a fetch that takes the turn over renews it': async (workers) => {
    await workers.fetch('w1', 1, true)
    await workers.scripts.pass(1_500)
    await workers.fetch('w2', 0)
    await workers.scripts.pass(4_000)
    return [await workers.fetch('w1', 1)]
  },
  'a turn ends when its worker yields it, and not when another one does': async (workers) => {
    await workers.fetch('w2', 0)
    await workers.scripts.yieldTurn('w2')
    await workers.fetch('w1', 0, true)
    await workers.scripts.yieldTurn('w2')
    const after = await workers.fetch('w2', 0, true)
    await workers.scripts.yieldTurn('w1')
    return [after, await workers.fetch('w2', 0, true)]
  },
  'a load returns chunks in the order of the ids, in any state': async (workers) => {
    await workers.add('a', 'b', 'c')
    await workers.fetch('w1', 2)
    await workers.fail('w1', 'a')
    return [await workers.scripts.load([]), await workers.scripts.load(['c', 'b', 'a']), await workers.left()]
  },
  'a load of a job that is gone returns nothing': async (workers) => {
    await workers.add('a')
    return [await workers.scripts.load(['a', 'gone']), await workers.scripts.load(['gone'])]
  },
}

const locks: Readonly<Record<string, Scenario>> = {
  'a job whose lock has expired is the next one, and others stay': async (workers) => {
    await workers.add('a', 'b', 'c')
    await workers.fetch('w1', 1)
    await workers.scripts.requeueStalled()
    const before = await workers.scripts.counts()
    await workers.stall()
    return [before, await workers.left()]
  },
  'jobs whose locks have expired are in front of the waiting ones': async (workers) => {
    await workers.add('a', 'b', 'c')
    await workers.fetch('w1', 2)
    await workers.stall()
    await workers.scripts.yieldTurn('w1')
    // The order among them is not defined.
    await workers.fetch('w2', 2)
    return [[...workers.tokens('w2', ['a', 'b', 'c']).keys()], await workers.left()]
  },
  'a failed job is not requeued when locks have expired': async (workers) => {
    await workers.add('a')
    await workers.fetch('w1', 1)
    await workers.fail('w1', 'a')
    await workers.stall()
    return [await workers.left()]
  },
  'a renewed lock lasts for its new duration': async (workers) => {
    await workers.add('a')
    await workers.fetch('w1', 1)
    await workers.renew('w1', ['a'])
    await workers.scripts.requeueStalled()
    const before = await workers.left()
    await workers.scripts.pass(RENEWED_LOCK_MS)
    await workers.scripts.requeueStalled()
    return [before, await workers.left()]
  },
  'a lock that has expired is not renewed': async (workers) => {
    await workers.add('a')
    await workers.fetch('w1', 1)
    await workers.scripts.pass(LOCK_MS + MARGIN_MS)
    await workers.renew('w1', ['a'])
    await workers.scripts.requeueStalled()
    return [await workers.left()]
  },
  'the lock of another worker is not renewed': async (workers) => {
    await workers.add('a')
    await workers.fetch('w1', 1)
    await workers.stall()
    await workers.fetch('w2', 1)
    await workers.renew('w1', ['a'])
    await workers.scripts.pass(RENEWED_LOCK_MS + MARGIN_MS)
    await workers.scripts.requeueStalled()
    return [await workers.left()]
  },
}

const moves: Readonly<Record<string, Scenario>> = {
  'a requeue to the front keeps the order of the chunks': async (workers) => {
    await workers.add('a', 'b', 'c', 'd')
    await workers.fetch('w1', 3)
    await workers.requeue('w1', ['a', 'b', 'c'], 'front')
    return [await workers.left()]
  },
  'a requeue to the back keeps the order of the chunks': async (workers) => {
    await workers.add('a', 'b', 'c', 'd')
    await workers.fetch('w1', 3)
    await workers.requeue('w1', ['a', 'b', 'c'], 'back')
    return [await workers.left()]
  },
  'a requeue of some chunks keeps the locks of the others': async (workers) => {
    await workers.add('a', 'b')
    await workers.fetch('w1', 2)
    await workers.requeue('w1', ['b'], 'front')
    const left = await workers.left()
    await workers.requeue('w1', ['a', 'b'], 'front')
    return [left, await workers.left()]
  },
  'a requeue by a worker whose lock has expired changes nothing': async (workers) => {
    await workers.add('a')
    await workers.fetch('w1', 1)
    await workers.scripts.pass(LOCK_MS + MARGIN_MS)
    await workers.requeue('w1', ['a'], 'front')
    const left = await workers.left()
    await workers.scripts.requeueStalled()
    return [left, await workers.left()]
  },
  'a requeue by a worker whose chunk waits again changes nothing': async (workers) => {
    await workers.add('a', 'b')
    await workers.fetch('w1', 1)
    await workers.stall()
    await workers.fetch('w2', 1)
    await workers.requeue('w2', ['a'], 'back')
    await workers.requeue('w1', ['a'], 'back')
    await workers.requeue('w1', ['a'], 'front')
    return [await workers.left()]
  },
  'a requeue by a worker whose chunk another one has changes nothing': async (workers) => {
    await workers.add('a', 'b')
    await workers.fetch('w1', 1)
    await workers.stall()
    await workers.fetch('w2', 1)
    await workers.requeue('w1', ['a'], 'front')
    return [await workers.left()]
  },
  'a failed chunk is not fetched again': async (workers) => {
    await workers.add('a', 'b')
    await workers.fetch('w1', 2)
    await workers.fail('w1', 'a')
    await workers.fail('w1', 'a')
    return [await workers.left()]
  },
  'a chunk does not fail by a worker whose lock has expired': async (workers) => {
    await workers.add('a')
    await workers.fetch('w1', 1)
    await workers.scripts.pass(LOCK_MS + MARGIN_MS)
    await workers.fail('w1', 'a')
    return [await workers.left()]
  },
  'a chunk does not fail by a worker whose chunk waits again, or another one has': async (workers) => {
    await workers.add('a', 'b')
    await workers.fetch('w1', 2)
    await workers.stall()
    await workers.fetch('w2', 1)
    await workers.fail('w1', 'a')
    await workers.fail('w1', 'b')
    return [await workers.scripts.counts()]
  },
}

const records: Readonly<Record<string, Scenario>> = {
  'a claim persists its chunks in order': async (workers) => {
    await workers.add('a', 'b')
    return [
      await workers.scripts.read(BATCH),
      await workers.scripts.claim(BATCH, ['b', 'a']),
      await workers.scripts.read(BATCH),
    ]
  },
  'a claim leaves out chunks of another batch and chunks whose jobs are gone': async (workers) => {
    await workers.add('a', 'b', 'c')
    return [
      await workers.scripts.claim('another', ['b']),
      await workers.scripts.claim(BATCH, ['gone', 'c', 'b', 'a']),
      await workers.scripts.read(BATCH),
      await workers.scripts.read('another'),
    ]
  },
  'a claim of no free chunk persists no batch': async (workers) => {
    await workers.add('a')
    await workers.scripts.claim('another', ['a'])
    return [await workers.scripts.claim(BATCH, ['a', 'gone']), await workers.scripts.read(BATCH)]
  },
  'a claim that is repeated changes nothing': async (workers) => {
    await workers.add('a', 'b')
    await workers.scripts.claim(BATCH, ['a'])
    await workers.split('all')
    return [await workers.scripts.claim(BATCH, ['b', 'a']), await workers.scripts.read(BATCH)]
  },
  'a claim of a chunk that is failed succeeds': async (workers) => {
    await workers.add('a')
    await workers.fetch('w1', 1)
    await workers.fail('w1', 'a')
    return [await workers.scripts.claim(BATCH, ['a'])]
  },
  'a claimed batch never expires': async (workers) => {
    await workers.claimed('w1', 'a')
    await workers.scripts.pass(2 * CONFIRMED_MS)
    return [await workers.scripts.read(BATCH), await workers.scripts.claim('another', ['a'])]
  },
  'a split is recorded for a claimed batch only': async (workers) => {
    const ids = await workers.claimed('w1', 'a')
    const { scripts } = workers
    const repair = (await scripts.beginRepair(BATCH, 'w1'))?.number ?? -1
    return [
      await scripts.beginRepair('unknown', 'w1'),
      await scripts.recordSplit('unknown', 'all', 0),
      await scripts.read('unknown'),
      await scripts.recordSplit(BATCH, 'all', repair),
      await scripts.recordSplit(BATCH, '0-5', repair),
      await scripts.recordSplit(BATCH, 'all', repair),
      await scripts.read(BATCH),
      await scripts.beginRepair(BATCH, 'w1'),
      await workers.finish('w1', ids, repair + 1),
      await scripts.recordSplit(BATCH, '0-2', repair + 1),
      await scripts.read(BATCH),
      await scripts.beginRepair(BATCH, 'w1'),
    ]
  },
  'a split of an earlier repair is rejected': async (workers) => {
    await workers.claimed('w1', 'a')
    const { scripts } = workers
    const repairs = [await scripts.beginRepair(BATCH, 'w1'), await scripts.beginRepair(BATCH, 'w1')]
    const recorded = []
    for (const repair of repairs)
      recorded.push(await scripts.recordSplit(BATCH, 'all', repair?.number ?? -1), await scripts.read(BATCH))
    return [repairs, recorded]
  },
  'a lease belongs to one worker until this worker ends it': async ({ scripts }) => {
    const first = [
      await scripts.beginRepair(BATCH, 'w1'),
      await scripts.beginRepair(BATCH, 'w1'),
      await scripts.beginRepair(BATCH, 'w2'),
      await scripts.beginRepair('another', 'w2'),
    ]
    await scripts.endLease(BATCH, 'w2')
    const second = await scripts.beginRepair(BATCH, 'w2')
    await scripts.endLease(BATCH, 'w1')
    return [...first, second, await scripts.beginRepair(BATCH, 'w2'), await scripts.beginRepair(BATCH, 'w1')]
  },
  'a lease expires, unless its worker extends it': async ({ scripts }) => {
    await scripts.beginRepair(BATCH, 'w1')
    await scripts.pass(10_000)
    await scripts.renewLease(BATCH, 'w2')
    await scripts.renewLease(BATCH, 'w1')
    await scripts.pass(14_000)
    const before = await scripts.beginRepair(BATCH, 'w2')
    await scripts.pass(2_000)
    await scripts.renewLease(BATCH, 'w1')
    return [before, await scripts.beginRepair(BATCH, 'w2'), await scripts.beginRepair(BATCH, 'w1')]
  },
}

const finishes: Readonly<Record<string, Scenario>> = {
  'a finish completes the jobs and releases the records': async (workers) => {
    const ids = await workers.claimed('w1', 'a', 'b')
    return [
      await workers.finish('w1', ids, 0),
      await workers.scripts.read(BATCH),
      await workers.scripts.claim('another', ids),
      await workers.left(),
      await workers.recordAround(RELEASED_MS),
      await workers.scripts.claim('another', ids),
    ]
  },
  'a finish of an earlier repair changes nothing': async (workers) => {
    const ids = await workers.claimed('w1', 'a', 'b')
    await workers.split('all', '0-1')
    return [
      await workers.finish('w1', ids, 0),
      await workers.left(),
      await workers.recordAround(CONFIRMED_MS),
      await workers.finish('w1', ids, 1),
      await workers.left(),
    ]
  },
  'a finish of a batch whose confirmation is lost changes nothing': async (workers) => {
    const ids = await workers.claimed('w1', 'a')
    await workers.split('all')
    return [
      await workers.finish('w1', ids, undefined),
      await workers.scripts.read(BATCH),
      await workers.left(),
    ]
  },
  'a finish of a confirmed batch ignores repairs': async (workers) => {
    const ids = await workers.claimed('w1', 'a')
    await workers.split('all')
    await workers.finish('w2', ids, 1)
    return [await workers.finish('w1', ids, 0), await workers.scripts.read(BATCH), await workers.left()]
  },
  'a finish leaves the jobs of others, and keeps the records': async (workers) => {
    const ids = await workers.claimed('w1', 'a', 'b')
    await workers.add('c')
    return [
      await workers.scripts.finish({ id: BATCH, members: ids }, 0, workers.tokens('w1', ['a'])),
      await workers.left(),
      await workers.scripts.load(['b', 'c']),
      await workers.recordAround(CONFIRMED_MS),
      await workers.scripts.claim('another', ids),
    ]
  },
  'a finish of the last job shortens the time for which records are kept': async (workers) => {
    const ids = await workers.claimed('w1', 'a', 'b')
    await workers.scripts.finish({ id: BATCH, members: ids }, 0, workers.tokens('w1', ['a']))
    return [
      await workers.finish('w1', ids, 0),
      await workers.left(),
      await workers.recordAround(RELEASED_MS),
      await workers.scripts.claim('another', ids),
    ]
  },
  'a finish after the release does not keep the records longer': async (workers) => {
    const ids = await workers.claimed('w1', 'a')
    await workers.finish('w1', ids, 0)
    await workers.scripts.pass(RELEASED_MS / 2)
    await workers.add('a')
    return [
      await workers.finish('w1', ids, 0),
      await workers.left(),
      await workers.recordAround(RELEASED_MS / 2),
      await workers.scripts.claim('another', ids),
    ]
  },
  'a finish leaves a job that another worker has locked': async (workers) => {
    const ids = await workers.claimed('w1', 'a', 'b')
    await workers.stall()
    await workers.fetch('w2', 2)
    return [
      await workers.finish('w1', ids, 0),
      await workers.scripts.read(BATCH),
      await workers.left(),
      await workers.finish('w2', ids, undefined),
      await workers.left(),
    ]
  },
  'a finish completes a job whose lock has expired': async (workers) => {
    const ids = await workers.claimed('w1', 'a')
    await workers.scripts.pass(LOCK_MS + MARGIN_MS)
    return [await workers.finish('w1', ids, 0), await workers.left(), await workers.recordAround(RELEASED_MS)]
  },
  'a finish completes a job whose lock of another worker has expired': async (workers) => {
    const ids = await workers.claimed('w1', 'a')
    await workers.stall()
    await workers.fetch('w2', 1)
    await workers.scripts.pass(LOCK_MS + MARGIN_MS)
    return [await workers.finish('w1', ids, 0), await workers.left(), await workers.recordAround(RELEASED_MS)]
  },
  'a finish leaves a job that waits again, and keeps the records': async (workers) => {
    const ids = await workers.claimed('w1', 'a')
    await workers.stall()
    return [
      await workers.finish('w1', ids, 0),
      await workers.left(),
      await workers.recordAround(RELEASED_MS),
      await workers.scripts.load(ids),
    ]
  },
  'a finish leaves a failed job, and keeps the records': async (workers) => {
    const ids = await workers.claimed('w1', 'a')
    await workers.fail('w1', 'a')
    return [
      await workers.finish('w1', ids, 0),
      await workers.left(),
      await workers.recordAround(RELEASED_MS),
      await workers.scripts.load(ids),
    ]
  },
  'a finish of a batch without a record completes its jobs and makes no record': async (workers) => {
    const ids = await workers.claimed('w1', 'a')
    await workers.finish('w1', ids, 0)
    await workers.scripts.pass(RELEASED_MS + MARGIN_MS)
    await workers.add('a', 'b')
    await workers.fetch('w1', 1)
    return [
      await workers.finish('w1', ['a', 'b'], 0),
      await workers.scripts.read(BATCH),
      await workers.left(),
      await workers.scripts.claim('another', ['a', 'b']),
    ]
  },
  'a finish of a batch without a record leaves the chunks of other batches claimed': async (workers) => {
    const ids = await workers.claimed('w1', 'a')
    await workers.finish('w1', ids, 0)
    await workers.scripts.pass(RELEASED_MS + MARGIN_MS)
    await workers.add('a')
    await workers.scripts.claim('another', ids)
    await workers.finish('w1', ids, 0)
    await workers.scripts.pass(2 * CONFIRMED_MS)
    return [await workers.scripts.claim(BATCH, ids), await workers.scripts.read(BATCH)]
  },
}

const server = useTestRedis()

describe('the answers of Redis are simulated:', () => {
  it.each(Object.entries({ ...adds, ...fetches, ...locks, ...moves, ...records, ...finishes }))(
    '%s',
    async (_name, run) => {
      const real = await run(new Workers(new RealScripts(server.url)))
      expect(real).toEqual(await run(new Workers(new SimulatedScripts())))
    },
  )
})
