import { acceptedPerS } from '../load/protocol.ts'
import { ProcessMeter, totalCpuMs } from '../measure/process-meter.ts'
import { drain, formatRate, type MeasurementContext, startPhase } from './context.ts'

export interface Saturation {
  readonly connections: number
  /** Entries accepted per second of the window, without any limit to the rate. */
  readonly acceptedPerS: number
  /** The same entries per second of the time until the last of them was stored. */
  readonly endToEndPerS: number
  /** CPU time of all processes, until the last entry was stored, divided by the entries. */
  readonly cpuUsPerEntry: number
}

/** In the first seconds under load the JIT compiles the hot functions, and ClickHouse starts its threads. */
const WARM_UP_MS = 4_000
/** The steps of the search for the number of connections. */
const STEP_MS = 2_000
const STEP_FACTOR = 4
const STEPS_MAX = 3
/** More connections are used only if they increase the rate by at least this factor. A smaller gain may be noise. */
const GAIN_MIN = 1.08

/**
 * Finds how many connections saturate a system, and warms the system up. A system with slow responses needs more connections
 * than a system that responds immediately.
 */
export async function findConnections(context: MeasurementContext): Promise<number> {
  let { connections } = context.scenario
  await runClosedLoop(context, connections, WARM_UP_MS)
  let best = await runClosedLoop(context, connections, STEP_MS)
  for (let step = 1; step < STEPS_MAX; step += 1) {
    const more = await runClosedLoop(context, connections * STEP_FACTOR, STEP_MS)
    if (more.acceptedPerS < best.acceptedPerS * GAIN_MIN) break
    best = more
    connections *= STEP_FACTOR
  }
  return connections
}

/** Measures a system at its limit: each connection sends as soon as it has its response. */
export async function saturate(context: MeasurementContext, connections: number): Promise<Saturation> {
  const saturation = await runClosedLoop(context, connections, context.windowMs)
  context.log(
    `saturated by ${connections} connections: ${formatRate(saturation.acceptedPerS)} accepted, ` +
      `${formatRate(saturation.endToEndPerS)} until everything was stored`,
  )
  return saturation
}

async function runClosedLoop(
  context: MeasurementContext,
  connections: number,
  durationMs: number,
): Promise<Saturation> {
  await startPhase(context)
  const meter = new ProcessMeter(context.system.pids())
  const startedMs = performance.now()
  const result = await context.load.run({ loop: 'closed', connections, durationMs })
  const { accepted, rejected, rejection = '' } = result
  if (accepted === 0) throw new Error(`no entry was accepted: ${JSON.stringify(rejected)} ${rejection}`)
  await drain(context, accepted)
  return {
    connections,
    acceptedPerS: acceptedPerS(result),
    endToEndPerS: (accepted / (performance.now() - startedMs)) * 1_000,
    cpuUsPerEntry: (totalCpuMs(meter.read(result.cpuMs).usage) * 1_000) / accepted,
  }
}
