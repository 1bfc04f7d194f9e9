import { eventually } from '@sluice/harness'
import { Fleet } from '@sluice/harness/fleet'
import { Journal } from '@sluice/harness/journal'
import { isExactlyOnce } from '@sluice/harness/settle'
import { afterAll, beforeAll, expect, it } from 'vitest'

const DEADLINE_MS = 3_000
/** On a busy machine, the exit itself may take this long. */
const MARGIN_MS = 10_000
/** Longer than it takes to stop Redis while inserts are in flight, and shorter than the deadline. */
const INSERT_DELAY_MS = 1_000

const journal = new Journal('shutdown')
let fleet: Fleet

beforeAll(async () => {
  fleet = await Fleet.start({
    environment: {
      LOCK_DURATION_MS: '2000',
      BATCH_ROWS_MAX: '10',
      SHUTDOWN_DEADLINE_MS: String(DEADLINE_MS),
    },
  })
})

afterAll(() => fleet?.stop())

it.each(['SIGSTOP', 'SIGKILL'] as const)(
  'SIGTERM ends a worker with batches in flight in order and in time after Redis got %s, and nothing is lost or doubled',
  async (signal) => {
    const { redis } = fleet.services.processes
    const worker = await fleet.startWorker()
    fleet.gate.insertDelayMs = INSERT_DELAY_MS
    await fleet.add(journal, 20, 5)
    await eventually(async () => expect(fleet.gate.delayedInserts).toBe(2))
    if (signal === 'SIGKILL') await redis.stop({ signal })
    else redis.kill(signal)

    const startedMs = performance.now()
    worker.process.kill('SIGTERM')
    const late = setTimeout(() => worker.process.kill('SIGKILL'), DEADLINE_MS + MARGIN_MS)
    const exit = await worker.process.exited
    clearTimeout(late)
    expect(exit).toEqual({ code: 0, signal: null })
    expect(performance.now() - startedMs).toBeLessThan(DEADLINE_MS + MARGIN_MS)

    if (signal === 'SIGKILL') await redis.start()
    else redis.kill('SIGCONT')
    fleet.gate.insertDelayMs = 0
    await fleet.startWorker()
    expect(await fleet.settle(journal)).toSatisfy(isExactlyOnce)
  },
  120_000,
)
