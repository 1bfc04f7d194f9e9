import { acceptedPerS, describeRejected, type LoadResult } from '../load/protocol.ts'
import { type MeterReading, ProcessMeter } from '../measure/process-meter.ts'
import { BacklogWatch } from './backlog-watch.ts'
import { drain, formatRate, type MeasurementContext, startPhase } from './context.ts'
import type { Saturation } from './saturation.ts'

/** One window of load at a fixed rate, and whether the system sustained it. */
interface Trial {
  readonly entriesPerS: number
  /** Reasons why the rate was not sustained; empty if it was. */
  readonly failures: readonly string[]
  readonly acceptedPerS: number
  /** In the last two thirds of the window. */
  readonly storedPerS: number
  /** Accepted minus stored entries per second, in the last two thirds of the window. */
  readonly backlogGrowthPerS: number
  /** From the last acknowledgement until everything was stored. */
  readonly drainMs: number
  /** From the first request until everything was stored: all work for the accepted entries. */
  readonly reading: MeterReading
  readonly load: LoadResult
  /** Rows in excess of accepted entries: entries stored twice, or stored without an acknowledgement. */
  readonly surplusRows: number
}

/** The search stops when its bounds are within this factor of each other. */
const PRECISION = 1.04
/** While no sustained rate is known, the lower bound is this share of the lowest rate that failed. */
const STEP_DOWN = 0.6
/** Trials in addition to `trialsMax` while no sustained rate is known. */
const EXTRA_TRIALS_MAX = 3

/** Growth below this share of the rate counts as none, because rows are stored in batches and the count rises in steps. */
const GROWTH_SHARE_MAX = 0.05
/** A short stall at the end of the window leaves some requests without a free connection. */
const UNSENT_SHARE_MAX = 0.01
/** Time to store unfinished batches and running inserts when no backlog has built up. */
const DRAIN_MS_MAX = 2_000
const DRAIN_WINDOW_SHARE_MAX = 0.15

/**
 * Searches for the highest sustained rate: the highest one at which the queue does not grow, and drains after the window.
 * Undefined if no rate was sustained.
 *
 * Saturation provides the bounds. Its end-to-end rate can usually be sustained, because the load took CPU time from the
 * drain. Its accepted rate can rarely be exceeded. Rates between the two are measured, each for a whole window.
 */
export async function findCapacity(
  context: MeasurementContext,
  saturation: Saturation,
): Promise<Trial | undefined> {
  const { connections, acceptedPerS: saturatedPerS, endToEndPerS } = saturation
  let best: Trial | undefined
  let low = endToEndPerS * STEP_DOWN
  let high = saturatedPerS * PRECISION
  let rate = Math.max(endToEndPerS, Math.sqrt(low * high))
  for (
    let trials = 0;
    trials < context.trialsMax + (best === undefined ? EXTRA_TRIALS_MAX : 0);
    trials += 1
  ) {
    const trial = await runTrial(context, connections, rate)
    if (trial.failures.length === 0) {
      best = trial
      low = rate
      // The saturated rate is not a strict upper bound: it was measured with a queue that grew.
      high = Math.max(high, rate * PRECISION)
    } else {
      high = rate
      if (best === undefined) low = Math.min(low, rate * STEP_DOWN)
    }
    if (best !== undefined && high / low <= PRECISION) break
    rate = Math.sqrt(low * high)
  }
  return best
}

export async function runTrial(
  context: MeasurementContext,
  connections: number,
  entriesPerS: number,
): Promise<Trial> {
  await startPhase(context)
  const meter = new ProcessMeter(context.system.pids())
  const backlog = new BacklogWatch(context.store)
  const options = { loop: 'open', connections, durationMs: context.windowMs, entriesPerS } as const
  const running = context.load.run(options, backlog.recordAccepted)
  await Promise.allSettled([running])
  await backlog.stop()
  const load = await running
  const steady = backlog.steadyRates(load.startedAtMs, load.windowMs)
  const endedMs = performance.now()
  const stored = await drain(context, load.accepted)
  const measured = {
    entriesPerS,
    acceptedPerS: acceptedPerS(load),
    storedPerS: steady.storedPerS,
    backlogGrowthPerS: steady.acceptedPerS - steady.storedPerS,
    drainMs: performance.now() - endedMs,
    reading: meter.read(load.cpuMs),
    load,
    surplusRows: stored - load.accepted,
  }
  const trial = { ...measured, failures: findFailures(context, measured) }
  const verdict = trial.failures.length === 0 ? 'sustained' : trial.failures.join(', ')
  context.log(`${formatRate(entriesPerS)} sent, ${formatRate(trial.storedPerS)} stored: ${verdict}`)
  return trial
}

function findFailures({ windowMs }: MeasurementContext, trial: Omit<Trial, 'failures'>): string[] {
  const { load, entriesPerS, backlogGrowthPerS, drainMs } = trial
  const failures: string[] = []
  const rejected = describeRejected(load)
  if (rejected !== '') failures.push(`rejected ${rejected}`)
  const unsentShare = load.unsent / load.due
  if (unsentShare > UNSENT_SHARE_MAX) {
    failures.push(`${(unsentShare * 100).toFixed(0)} % of the requests found no free connection`)
  }
  if (backlogGrowthPerS > entriesPerS * GROWTH_SHARE_MAX) {
    failures.push(`the backlog grew by ${formatRate(backlogGrowthPerS)}`)
  }
  if (drainMs > DRAIN_MS_MAX + DRAIN_WINDOW_SHARE_MAX * windowMs) {
    failures.push(`the drain took ${(drainMs / 1_000).toFixed(1)} s`)
  }
  return failures
}
