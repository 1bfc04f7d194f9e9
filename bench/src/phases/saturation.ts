import { type Cell, drain, perS } from './cell.ts'

export interface Saturation {
  readonly connections: number
  /** Entries a second, while nothing is held back. */
  readonly acceptedPerS: number
  /** The same entries, by the time until the last of them was stored. */
  readonly throughPerS: number
}

/** The JIT compiles the hot functions, and ClickHouse starts its threads, in the first seconds under load. */
const WARM_UP_MS = 4_000
/** The steps of the search for the number of connections. */
const STEP_MS = 2_000
const STEP_FACTOR = 4
const STEPS_MAX = 3
/** More connections are worth it if they bring this much more; less may be noise. */
const GAIN_MIN = 1.08

/**
 * Finds how many connections saturate a system: one whose answers take long by design needs more of them than one that
 * answers at once. Warms it up on the way.
 */
export async function findConnections(cell: Cell): Promise<number> {
  let { connections } = cell.scenario
  await pressOnce(cell, connections, WARM_UP_MS)
  let best = await pressOnce(cell, connections, STEP_MS)
  for (let step = 1; step < STEPS_MAX; step += 1) {
    const more = await pressOnce(cell, connections * STEP_FACTOR, STEP_MS)
    if (more.acceptedPerS < best.acceptedPerS * GAIN_MIN) break
    best = more
    connections *= STEP_FACTOR
  }
  return connections
}

/** Takes a system to its limit: each connection sends as fast as it is answered. */
export async function saturate(cell: Cell, connections: number): Promise<Saturation> {
  const saturation = { connections, ...(await pressOnce(cell, connections, cell.windowMs)) }
  cell.note(
    `saturated by ${connections} connections: ${perS(saturation.acceptedPerS)} accepted, ` +
      `${perS(saturation.throughPerS)} until all was stored`,
  )
  return saturation
}

async function pressOnce(
  cell: Cell,
  connections: number,
  durationMs: number,
): Promise<{ acceptedPerS: number; throughPerS: number }> {
  cell.signal.throwIfAborted()
  await cell.store.clear()
  const startedMs = performance.now()
  const result = await cell.load.run({ loop: 'closed', connections, durationMs, entriesMax: undefined })
  const { accepted, refused, refusal = '' } = result
  if (accepted === 0) throw new Error(`nothing was accepted: ${JSON.stringify(refused)} ${refusal}`)
  await drain(cell, accepted)
  return {
    acceptedPerS: (result.acceptedInWindow / result.windowMs) * 1_000,
    throughPerS: (accepted / (performance.now() - startedMs)) * 1_000,
  }
}
