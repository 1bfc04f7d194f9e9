import { setTimeout as delay } from 'node:timers/promises'
import { backoffMs } from '@sluice/runtime'
import { describeExit, ProcessError, type SupervisedProcess } from './supervised-process.ts'
import type { Supervisor } from './supervisor.ts'

/** A process that dies this often within a minute will not recover by itself. */
export const deathsMax = 5
const WINDOW_MS = 60_000
/** The first restart looks immediate to a user. The later waits leave time for the cause to disappear. */
const backoff = { baseMs: 200, maxMs: 5_000 }

export interface KeepAliveReport {
  readonly warn: (text: string) => void
  readonly done: (text: string, tookMs: number) => void
}

/**
 * Restarts a process whenever it dies, until its supervisor stops.
 *
 * @throws ProcessError when it keeps dying: `deathsMax` times within a minute
 */
export async function keepAlive(
  supervisor: Supervisor,
  kept: SupervisedProcess,
  { report, random }: { report: KeepAliveReport; random: () => number },
): Promise<void> {
  let deathTimesMs: readonly number[] = []
  for (;;) {
    const exit = await kept.exited
    if (supervisor.stopping) return
    deathTimesMs = recentDeaths(deathTimesMs, performance.now())
    if (deathTimesMs.length >= deathsMax) {
      throw new ProcessError(
        `${kept.name} exited ${deathsMax} times within a minute (${describeExit(exit)})`,
        kept.logFile,
      )
    }
    const waitMs = backoffMs(deathTimesMs.length, backoff, random())
    report.warn(
      `${kept.name} exited (${describeExit(exit)}); restarting it in ${(waitMs / 1000).toFixed(1)} s`,
    )
    await delay(waitMs)
    if (supervisor.stopping) return
    const startedAtMs = performance.now()
    try {
      await kept.start()
      report.done(`${kept.name} is running again`, performance.now() - startedAtMs)
    } catch (error) {
      if (!(error instanceof ProcessError)) throw error
      // The process is not running. The loop counts this as its next death.
      report.warn(error.message)
    }
  }
}

/** The times of the deaths in the last minute, including the one at `nowMs`. */
export function recentDeaths(earlierMs: readonly number[], nowMs: number): number[] {
  return [...earlierMs.filter((time) => nowMs - time < WINDOW_MS), nowMs]
}
