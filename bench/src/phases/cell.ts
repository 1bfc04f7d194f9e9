import type { LoadProcess } from '../load/load-process.ts'
import type { Store } from '../measure/store.ts'
import type { Scenario } from '../scenarios.ts'
import type { System } from '../systems/system.ts'

/** One system under one scenario, while it is measured. */
export interface Cell {
  readonly system: System
  readonly scenario: Scenario
  readonly store: Store
  readonly load: LoadProcess
  /** How long each measured window is. */
  readonly windowMs: number
  /** How many rates the search for the highest one tries. */
  readonly trialsMax: number
  /** Aborted when the benchmark is interrupted. */
  readonly signal: AbortSignal
  /** Tells the person who waits how it goes. */
  readonly note: (text: string) => void
}

/**
 * How long a queue may take to drain after a window: a system that takes in five times what it stores needs four
 * windows, and one that needs longer is reported as one that does not drain.
 */
export function drainDeadlineMs({ windowMs }: Pick<Cell, 'windowMs'>): number {
  return 30_000 + 6 * windowMs
}

/** Waits until all that was accepted is stored. @throws NotDrainedError */
export async function drain(cell: Cell, accepted: number): Promise<number> {
  return cell.store.untilCount(accepted, { deadlineMs: drainDeadlineMs(cell), signal: cell.signal })
}

export function perS(count: number): string {
  return `${Math.round(count).toLocaleString('en')}/s`
}
