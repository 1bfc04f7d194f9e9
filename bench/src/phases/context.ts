import type { LoadProcess } from '../load/load-process.ts'
import type { Scenario } from '../load/scenarios.ts'
import type { Store } from '../measure/store.ts'
import type { System } from '../systems.ts'

/** One system under one scenario, with the tools to measure it. */
export interface MeasurementContext {
  readonly system: System
  readonly scenario: Scenario
  readonly store: Store
  readonly load: LoadProcess
  /** Length of each measurement window. */
  readonly windowMs: number
  /** How many rates the search for the highest sustained rate measures. */
  readonly trialsMax: number
  /** Entries per second at which latencies are measured. Undefined: half of the system's highest sustained rate. */
  readonly ratePerS: number | undefined
  /** Aborted when the benchmark is interrupted. */
  readonly signal: AbortSignal
  /** Reports progress to the user. */
  readonly log: (text: string) => void
}

/** Every phase starts with an empty table. @throws when the benchmark was interrupted */
export async function startPhase({ signal, store }: MeasurementContext): Promise<void> {
  signal.throwIfAborted()
  await store.clear()
}

/**
 * Waits until all accepted entries are stored. A system that accepts five times what it stores needs four windows.
 *
 * @returns the number of rows
 * @throws if the system needs more than six
 */
export async function drain(
  { windowMs, store, signal }: MeasurementContext,
  accepted: number,
): Promise<number> {
  return store.waitForCount(accepted, { deadlineMs: 30_000 + 6 * windowMs, signal })
}

export function formatRate(perS: number): string {
  return `${Math.round(perS).toLocaleString('en')}/s`
}
