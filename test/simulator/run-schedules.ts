// A child process of the simulator: runs a range of seeds, and reports to its parent.
import { setImmediate } from 'node:timers/promises'
import { runSchedule } from './schedule.ts'

export interface Progress {
  readonly schedules: number
  readonly acknowledged: number
  readonly faults: number
  /** The seed that failed, and why. The child ends after it. */
  readonly failure?: { readonly seed: number; readonly reason: string }
}

const REPORT_EVERY = 100

const [first = 0, step = 1, count = 0] = process.argv.slice(2).map(Number)
let progress = { schedules: 0, acknowledged: 0, faults: 0 }
for (let i = 0, seed = first; i < count; i += 1, seed += step) {
  const { failure, acknowledged, faults } = await runSchedule(seed)
  // A schedule has no real iterations of the event loop. Node frees some objects, such as composite signals, only between iterations.
  await setImmediate()
  progress = {
    schedules: progress.schedules + 1,
    acknowledged: progress.acknowledged + acknowledged,
    faults: progress.faults + faults,
  }
  if (failure !== undefined) {
    send({ ...progress, failure: { seed, reason: failure } })
    process.exit(1)
  }
  if (progress.schedules === REPORT_EVERY || i === count - 1) {
    send(progress)
    progress = { schedules: 0, acknowledged: 0, faults: 0 }
  }
}
process.disconnect?.()

function send(message: Progress): void {
  process.send?.(message)
}
