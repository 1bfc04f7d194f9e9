import { CONFIRMED_TTL_S } from '@sluice/queue'
import { runsOf } from '@sluice/harness'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RELEASED_TTL_S } from '../../packages/queue/src/batch-ledger.ts'
import { useTestRedis } from '../../packages/queue/test/support/consumer-fixture.ts'
import { realScripts, RENEWED_LOCK_MS, simulatedScripts } from './queue-scripts.ts'
import { MARGIN_MS, workersOn } from './scenario-workers.ts'
import { LOCK_MS } from './simulated-redis.ts'

const RELEASED_MS = RELEASED_TTL_S * 1_000
const CONFIRMED_MS = CONFIRMED_TTL_S * 1_000

type Workers = ReturnType<typeof workersOn>

/** The name of a method of `Workers`, and its arguments. */
type Step = readonly [name: string, ...args: readonly unknown[]]

/** A step that is as frequent as its weight, with arguments of these arbitraries. */
function step(weight: number, name: string, ...of: readonly fc.Arbitrary<unknown>[]) {
  return { weight, arbitrary: fc.tuple<[string, ...unknown[]]>(fc.constant(name), ...of) }
}

function take(workers: Workers, [name, ...args]: Step): unknown {
  return (workers[name as keyof Workers] as (...all: readonly unknown[]) => unknown)(...args)
}

const valueOf = (word: string): unknown =>
  word.startsWith('[') ? word.slice(1, -1).split(',') : /^(\d+|true)$/.test(word) ? JSON.parse(word) : word

/** The steps of a text. `[a,b]` is an array. */
function parse(text: string): Step[] {
  return text.split('; ').map((each) => each.split(' ').map(valueOf) as unknown as Step)
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
  step(6, 'add', chunk, fc.nat(4)),
  step(1, 'add', chunk, fc.nat(4), fc.constant(-MARGIN_MS)),
  step(2, 'complete', fc.nat(4)),
  step(8, 'fetch', worker, fc.nat(3), fc.boolean()),
  step(3, 'yieldTurn', worker),
  step(2, 'load', chunks),
  step(2, 'requeue', worker, chunks, end),
  step(1, 'fail', worker, chunk),
  step(6, 'claim', batch, chunks),
  step(1, 'claimAgain', batch),
  step(4, 'beginRepair', batch, worker),
  step(4, 'split', batch, range, begun),
  step(2, 'endLease', batch, worker),
  step(8, 'finish', worker, batch, repair),
  step(2, 'pass', passed),
  step(1, 'stallInOrder'),
)

/** What an operator, or any next step, could see. */
async function observe(workers: Workers): Promise<unknown> {
  return [await workers.counts(), await workers.read('first'), await workers.read('second')]
}

/** Steps whose responses depend on times. */
const scenarios = {
  'a turn expires': 'add a; fetch w1 1; pass 4000; fetch w2 1; pass 2000; fetch w2 1; fetch w1 1',
  'a chunk that arrives late is admitted with a later receipt, which is complete when it is stored':
    'add a 5; complete 3; complete 7; add b 2; complete 9; add b 7; add b 8; complete 9; fetch w1 2; claim first [a,b]; finish w1 first 0; complete 9; complete 4; add c 9',
  'a chunk that was admitted and does not come is given up':
    'complete 5; add a 1; complete 9; pass 12000; complete 9; add a 6',
  'a failed chunk is not complete': 'add a 5; fetch w1 1; fail w1 a; complete 9',
  'a fetch renews a turn when less than half of its time is left':
    'fetch w1 1; pass 3500; fetch w1 0; pass 4000; fetch w2 1',
  'a fetch leaves a turn unchanged when more than half of its time is left':
    'fetch w1 1; pass 1500; fetch w1 0; pass 4000; fetch w2 1',
  'a fetch of a worker that becomes busy renews its turn':
    'fetch w1 1; pass 1500; fetch w1 0 true; pass 4000; fetch w2 1 true',
  'a fetch that takes the turn over renews it':
    'fetch w1 1 true; pass 1500; fetch w2 0; pass 4000; fetch w1 1',
  'jobs whose locks have expired are in front of the waiting ones, in any order, and others stay':
    'add a; add b; add c; fetch w1 2; requeueStalled; counts; stall; yieldTurn w1; fetchInAnyOrder w2 2; left',
  'a renewed lock lasts for its new duration': `claimed w1 first [a]; renew w1 [a] ${RENEWED_LOCK_MS}; requeueStalled; left; pass ${RENEWED_LOCK_MS}; requeueStalled; left`,
  'a lock that has expired is not renewed': `claimed w1 first [a]; pass ${LOCK_MS + MARGIN_MS}; renew w1 [a] ${RENEWED_LOCK_MS}; requeueStalled; left`,
  'the lock of another worker is not renewed': `claimed w1 first [a]; stall; fetch w2 1; renew w1 [a] ${RENEWED_LOCK_MS}; pass ${RENEWED_LOCK_MS + MARGIN_MS}; requeueStalled; left`,
  'a lease expires, unless its worker extends it':
    'beginRepair first w1; pass 10000; renewLease first w2; renewLease first w1; pass 14000; ' +
    'beginRepair first w2; pass 2000; renewLease first w1; beginRepair first w2; beginRepair first w1',
  'a finish releases the records of a batch without jobs': `claimed w1 first [a,b]; finish w1 first 0; recordAround first ${RELEASED_MS}`,
  'a finish keeps the records of a batch with a job': `claimed w1 first [a,b]; finish w1 first 0 [a]; recordAround first ${CONFIRMED_MS}`,
  'a finish completes a job whose lock of another worker has expired': `claimed w1 first [a]; stall; fetch w2 1; pass ${LOCK_MS + MARGIN_MS}; finish w1 first 0; left`,
  'a finish of the last job shortens the time for which records are kept': `claimed w1 first [a,b]; finish w1 first 0 [a]; finish w1 first 0; recordAround first ${RELEASED_MS}; claim second [a,b]`,
  'a finish after the release does not keep the records longer': `claimed w1 first [a]; finish w1 first 0; pass ${RELEASED_MS / 2}; add a; finish w1 first 0; recordAround first ${RELEASED_MS / 2}; claim second [a]`,
}

const server = useTestRedis()

describe('the replies of Redis are simulated:', () => {
  it('in any order of steps', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { maxLength: 60, size: 'max' }), async (all) => {
        const [real, simulated] = workersOnBoth()
        for (const each of all) {
          expect(await take(real, each)).toEqual(await take(simulated, each))
          expect(await observe(real)).toEqual(await observe(simulated))
        }
        expect(await real.left()).toEqual(await simulated.left())
      }),
      runsOf(50),
    )
  })

  it.each(Object.entries(scenarios))('%s', async (_name, text) => {
    const responses: unknown[][] = []
    for (const workers of workersOnBoth()) {
      const ofWorkers: unknown[] = []
      for (const each of parse(text)) ofWorkers.push([each, await take(workers, each)])
      responses.push(ofWorkers)
    }
    expect(responses[0]).toEqual(responses[1])
  })
})

function workersOnBoth(): [real: Workers, simulated: Workers] {
  return [workersOn(realScripts(server.url)), workersOn(simulatedScripts())]
}
