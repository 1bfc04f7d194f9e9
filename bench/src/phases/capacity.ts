import type { Cell } from './cell.ts'
import type { Saturation } from './saturation.ts'
import { tryRate, type Trial } from './trial.ts'

export interface Capacity {
  /** The highest rate that was kept up. Undefined when none was. */
  readonly best: Trial | undefined
  readonly trials: readonly Trial[]
}

/** Rates that are closer than this are not told apart. */
const PRECISION = 1.04
/** How far below a rate that was not kept up the search looks when it knows of none that was. */
const STEP_DOWN = 0.6
/** Beyond the trials that the search may take, to find any rate that is kept up. */
const RESCUES_MAX = 3

/**
 * Searches for the highest rate that still drains to zero.
 *
 * Saturation gives its bounds: what went through under full load can be kept up, for the most part, because that load
 * took CPU time from the drain; what was accepted under full load cannot be exceeded. Between them rates are tried, each
 * for a whole window.
 */
export async function findCapacity(cell: Cell, saturation: Saturation): Promise<Capacity> {
  const { connections, acceptedPerS, throughPerS } = saturation
  const trials: Trial[] = []
  let best: Trial | undefined
  let low = throughPerS * STEP_DOWN
  let high = acceptedPerS * PRECISION
  let rate = Math.max(throughPerS, Math.sqrt(low * high))
  for (;;) {
    const spent = trials.length
    if (best === undefined ? spent >= cell.trialsMax + RESCUES_MAX : spent >= cell.trialsMax) break
    const trial = await tryRate(cell, connections, rate)
    trials.push(trial)
    if (trial.complaints.length === 0) {
      best = trial
      low = rate
      // Saturation's own figure is no wall: it was measured with a queue behind it.
      high = Math.max(high, rate * PRECISION)
    } else {
      high = rate
      if (best === undefined) low = Math.min(low, rate * STEP_DOWN)
    }
    if (best !== undefined && high / low <= PRECISION) break
    rate = Math.sqrt(low * high)
  }
  return { best, trials }
}
