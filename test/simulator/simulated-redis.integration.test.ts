import { CONFIRMED_TTL_S } from '@sluice/queue'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RELEASED_TTL_S } from '../../packages/queue/src/batch-ledger.ts'
import { useTestRedis } from '../../packages/queue/test/support/consumer-fixture.ts'
import { RealScripts, RENEWED_LOCK_MS, SimulatedScripts } from './queue-scripts.ts'
import { MARGIN_MS, Workers } from './scenario-workers.ts'
import { LOCK_MS } from './simulated-redis.ts'

const RELEASED_MS = RELEASED_TTL_S * 1_000
const CONFIRMED_MS = CONFIRMED_TTL_S * 1_000

/** A step that is printed in a counterexample. */
interface Step {
  readonly run: (workers: Workers) => unknown
  readonly [fc.toStringMethod]: () => string
}

/** A step that is as frequent as its weight, with arguments of these arbitraries. */
function step<Arguments extends unknown[]>(
  weight: number,
  name: string,
  of: { [I in keyof Arguments]: fc.Arbitrary<Arguments[I]> },
  run: (workers: Workers, ...values: Arguments) => unknown,
): { readonly weight: number; readonly arbitrary: fc.Arbitrary<Step> } {
  const arbitrary = fc.tuple<Arguments>(...of).map((values) => ({
    run: (workers: Workers) => run(workers, ...values),
    [fc.toStringMethod]: () => `${name}(${values.map((value) => JSON.stringify(value)).join(', ')})`,
  }))
  return { weight, arbitrary }
}

const worker = fc.constantFrom('w1', 'w2')
const chunk = fc.constantFrom('a', 'b', 'c', 'd')
const chunks = fc.shuffledSubarray(['a', 'b', 'c', 'd'], { minLength: 1 })
const batch = fc.constantFrom('first', 'second')
const end = fc.constantFrom('front', 'back')
const range = fc.constantFrom('all', '0-2')
const repair = fc.option(fc.nat(2), { nil: undefined })
/** A split names a repair that has begun, now or earlier. */
const begun = fc.integer({ min: 1, max: 3 })
/** Far from every time to live, whatever their sum. */
const passed = fc.constantFrom(LOCK_MS + MARGIN_MS, RELEASED_MS + MARGIN_MS, CONFIRMED_MS + MARGIN_MS)

const steps = fc.oneof(
  step(6, 'add', [chunk], (workers, id) => workers.add(id)),
  step(1, 'add late', [chunk], (workers, id) => workers.add(id, -MARGIN_MS)),
  step(8, 'fetch', [worker, fc.nat(3), fc.boolean()], (workers, ...of) => workers.fetch(...of)),
  step(3, 'yield', [worker], ({ scripts }, id) => scripts.yieldTurn(id)),
  step(2, 'load', [chunks], ({ scripts }, ids) => scripts.load(ids)),
  step(2, 'requeue', [worker, chunks, end], (workers, ...of) => workers.requeue(...of)),
  step(1, 'fail', [worker, chunk], (workers, ...of) => workers.fail(...of)),
  step(6, 'claim', [batch, chunks], (workers, ...of) => workers.claim(...of)),
  step(1, 'claim again', [batch], (workers, name) => workers.claimAgain(name)),
  step(4, 'begin repair', [batch, worker], (workers, name, id) =>
    workers.scripts.beginRepair(workers.batch(name).id, id),
  ),
  step(4, 'split', [batch, range, begun], (workers, ...of) => workers.split(...of)),
  step(2, 'end lease', [batch, worker], (workers, name, id) =>
    workers.scripts.endLease(workers.batch(name).id, id),
  ),
  step(8, 'finish', [worker, batch, repair], (workers, ...of) => workers.finish(...of)),
  step(2, 'pass', [passed], ({ scripts }, ms) => scripts.pass(ms)),
  step(1, 'stall', [], (workers) => workers.stallInOrder()),
)

/** What an operator, or any next step, could see. */
async function observe(workers: Workers): Promise<unknown> {
  return [await workers.scripts.counts(), await workers.read('first'), await workers.read('second')]
}

/** Steps whose responses depend on times. @returns the responses */
type Scenario = (workers: Workers) => Promise<readonly unknown[]>

const turns: Readonly<Record<string, Scenario>> = {
  'a turn expires': async (workers) => {
    await workers.add('a')
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
}

const locks: Readonly<Record<string, Scenario>> = {
  'jobs whose locks have expired are in front of the waiting ones, and others stay': async (workers) => {
    for (const id of ['a', 'b', 'c']) await workers.add(id)
    await workers.fetch('w1', 2)
    await workers.scripts.requeueStalled()
    const before = await workers.scripts.counts()
    await workers.stall()
    await workers.scripts.yieldTurn('w1')
    // The order among them is not defined.
    await workers.fetch('w2', 2)
    return [before, await workers.left()]
  },
  'a renewed lock lasts for its new duration': async (workers) => {
    await workers.add('a')
    await workers.fetch('w1', 1)
    await workers.renew('w1', ['a'], RENEWED_LOCK_MS)
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
    await workers.renew('w1', ['a'], RENEWED_LOCK_MS)
    await workers.scripts.requeueStalled()
    return [await workers.left()]
  },
  'the lock of another worker is not renewed': async (workers) => {
    await workers.add('a')
    await workers.fetch('w1', 1)
    await workers.stall()
    await workers.fetch('w2', 1)
    await workers.renew('w1', ['a'], RENEWED_LOCK_MS)
    await workers.scripts.pass(RENEWED_LOCK_MS + MARGIN_MS)
    await workers.scripts.requeueStalled()
    return [await workers.left()]
  },
}

const records: Readonly<Record<string, Scenario>> = {
  'a lease expires, unless its worker extends it': async ({ scripts }) => {
    await scripts.beginRepair('first', 'w1')
    await scripts.pass(10_000)
    await scripts.renewLease('first', 'w2')
    await scripts.renewLease('first', 'w1')
    await scripts.pass(14_000)
    const before = await scripts.beginRepair('first', 'w2')
    await scripts.pass(2_000)
    await scripts.renewLease('first', 'w1')
    return [before, await scripts.beginRepair('first', 'w2'), await scripts.beginRepair('first', 'w1')]
  },
  'a finish releases the records of a batch without jobs': async (workers) => {
    await workers.claimed('w1', 'first', ['a', 'b'])
    return [await workers.finish('w1', 'first', 0), await workers.recordAround('first', RELEASED_MS)]
  },
  'a finish keeps the records of a batch with a job': async (workers) => {
    await workers.claimed('w1', 'first', ['a', 'b'])
    return [await workers.finish('w1', 'first', 0, ['a']), await workers.recordAround('first', CONFIRMED_MS)]
  },
  'a finish completes a job whose lock of another worker has expired': async (workers) => {
    await workers.claimed('w1', 'first', ['a'])
    await workers.stall()
    await workers.fetch('w2', 1)
    await workers.scripts.pass(LOCK_MS + MARGIN_MS)
    return [await workers.finish('w1', 'first', 0), await workers.left()]
  },
  'a finish of the last job shortens the time for which records are kept': async (workers) => {
    await workers.claimed('w1', 'first', ['a', 'b'])
    await workers.finish('w1', 'first', 0, ['a'])
    await workers.finish('w1', 'first', 0)
    return [await workers.recordAround('first', RELEASED_MS), await workers.claim('second', ['a', 'b'])]
  },
  'a finish after the release does not keep the records longer': async (workers) => {
    await workers.claimed('w1', 'first', ['a'])
    await workers.finish('w1', 'first', 0)
    await workers.scripts.pass(RELEASED_MS / 2)
    await workers.add('a')
    await workers.finish('w1', 'first', 0)
    return [await workers.recordAround('first', RELEASED_MS / 2), await workers.claim('second', ['a'])]
  },
}

const server = useTestRedis()

describe('the replies of Redis are simulated:', () => {
  it('in any order of steps', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { maxLength: 60, size: 'max' }), async (all) => {
        const [real, simulated] = [
          new Workers(new RealScripts(server.url)),
          new Workers(new SimulatedScripts()),
        ]
        for (const { run } of all) {
          expect(await run(real)).toEqual(await run(simulated))
          expect(await observe(real)).toEqual(await observe(simulated))
        }
        expect(await real.left()).toEqual(await simulated.left())
      }),
      { numRuns: 50 },
    )
  })

  it.each(Object.entries({ ...turns, ...locks, ...records }))('%s', async (_name, run) => {
    const real = await run(new Workers(new RealScripts(server.url)))
    expect(real).toEqual(await run(new Workers(new SimulatedScripts())))
  })
})
