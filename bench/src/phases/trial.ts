import { BacklogWatch } from '../measure/backlog-watch.ts'
import { ProcessMeter, type Reading } from '../measure/process-meter.ts'
import type { LoadResult } from '../load/protocol.ts'
import { type Cell, drain, perS } from './cell.ts'

/** A rate that was tried, and what became of it. */
export interface Trial {
  readonly entriesPerS: number
  /** Why the rate cannot be kept up; empty when it can. */
  readonly complaints: readonly string[]
  readonly acceptedPerS: number
  /** In the steady part of the window. */
  readonly storedPerS: number
  /** By how much what is accepted grew faster than what is stored, in the steady part of the window. */
  readonly backlogGrowthPerS: number
  /** From the last acknowledgement until all was stored. */
  readonly drainMs: number
  /** From the first request until all was stored, so that it holds all work for the accepted entries. */
  readonly taken: Reading
  readonly load: LoadResult
  /** Rows beyond what was accepted: entries that were stored twice, or stored without having been acknowledged. */
  readonly surplusRows: number
}

/** A queue that grows by less than this share of the rate is one that does not grow: batches make the count a staircase. */
const GROWTH_SHARE_MAX = 0.05
/** When the window ends in the middle of a hiccup, some requests are still waiting for a connection. */
const UNSENT_SHARE_MAX = 0.01
/** What batches in the making and inserts under way hold when nothing has piled up. */
const DRAIN_MS_MAX = 2_000
const DRAIN_WINDOW_SHARE_MAX = 0.15

/** Sends at a fixed rate for a window, and sees whether the system keeps up with it. */
export async function tryRate(cell: Cell, connections: number, entriesPerS: number): Promise<Trial> {
  cell.signal.throwIfAborted()
  await cell.store.clear()
  const meter = new ProcessMeter(cell.system.pids())
  const { load, rates } = await sendAndWatch(cell, connections, entriesPerS)
  const endedMs = performance.now()
  const stored = await drain(cell, load.accepted)
  const measured = {
    entriesPerS,
    ...rates,
    drainMs: performance.now() - endedMs,
    taken: meter.read(load.cpuMs),
    load,
    surplusRows: stored - load.accepted,
  }
  const trial = { ...measured, complaints: complain(cell, measured) }
  const verdict = trial.complaints.length === 0 ? 'kept up' : trial.complaints.join(', ')
  cell.note(`${perS(entriesPerS)} offered, ${perS(trial.storedPerS)} stored: ${verdict}`)
  return trial
}

async function sendAndWatch(
  { store, load, windowMs }: Cell,
  connections: number,
  entriesPerS: number,
): Promise<{ load: LoadResult; rates: Pick<Trial, 'acceptedPerS' | 'storedPerS' | 'backlogGrowthPerS'> }> {
  const backlog = new BacklogWatch(store)
  const options = { loop: 'open', connections, durationMs: windowMs, entriesPerS } as const
  try {
    const result = await load.run(options, backlog.accept)
    const { acceptedPerS, storedPerS } = backlog.steadyRates(result.startedAtMs, result.windowMs)
    return {
      load: result,
      rates: {
        acceptedPerS: (result.acceptedInWindow / result.windowMs) * 1_000,
        storedPerS,
        backlogGrowthPerS: acceptedPerS - storedPerS,
      },
    }
  } finally {
    await backlog.stop()
  }
}

function complain(cell: Cell, trial: Omit<Trial, 'complaints'>): string[] {
  const { load, entriesPerS, backlogGrowthPerS, drainMs } = trial
  const complaints: string[] = []
  const refused = Object.entries(load.refused).map(([status, count]) => `${count} × ${status}`)
  if (refused.length > 0) complaints.push(`refused ${refused.join(', ')}`)
  const unsentShare = load.unsent / load.due
  if (unsentShare > UNSENT_SHARE_MAX) {
    complaints.push(`${(unsentShare * 100).toFixed(0)} % of the requests found no free connection`)
  }
  if (backlogGrowthPerS > entriesPerS * GROWTH_SHARE_MAX) {
    complaints.push(`the queue grew by ${perS(backlogGrowthPerS)}`)
  }
  if (drainMs > DRAIN_MS_MAX + DRAIN_WINDOW_SHARE_MAX * cell.windowMs) {
    complaints.push(`it took ${(drainMs / 1_000).toFixed(1)} s to drain`)
  }
  return complaints
}
