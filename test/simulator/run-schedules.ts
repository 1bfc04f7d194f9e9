// A child process of the simulator: runs a range of seeds, and reports to its parent.
import { setImmediate } from 'node:timers/promises'
import { runSchedule } from './schedule.ts'

export interface Progress {
  readonly schedules: number
  readonly acknowledged: number
  readonly faults: number
  /** The seed that failed, and why. The child ends after it. */
  readonly failure?: { readonly seed: number; readonly reason: string } | undefined
}

const REPORT_EVERY = 100
const none = { schedules: 0, acknowledged: 0, faults: 0 }

const [first = 0, step = 1, count = 0] = process.argv.slice(2).map(Number)
let progress = none
for (let i = 0, seed = first; i < count; i += 1, seed += step) {
  const { failure: reason, acknowledged, faults } = await runSchedule(seed)
  // A schedule has no real iterations of the event loop. Node frees some objects, such as composite signals, only between iterations.
  await setImmediate()
  progress = {
    schedules: progress.schedules + 1,
    acknowledged: progress.acknowledged + acknowledged,
    faults: progress.faults + faults,
  }
  if (reason === undefined && progress.schedules < REPORT_EVERY && i < count - 1) continue
  process.send?.({
    ...progress,
    failure: reason === undefined ? undefined : { seed, reason },
  } satisfies Progress)
  if (reason !== undefined) process.exit(1)
  progress = none
}
process.disconnect?.()
