import { ProcessMeter, type Reading } from '../measure/process-meter.ts'
import { QueryableProbe, type QueryableTimes } from '../measure/queryable-probe.ts'
import type { LoadResult } from '../load/protocol.ts'
import { type Cell, drain, perS } from './cell.ts'

export interface HalfLoad {
  readonly load: LoadResult
  readonly queryable: QueryableTimes
  readonly taken: Reading
}

/** Measures latencies at a rate that leaves the system room: half of what it can keep up. */
export async function measureHalfLoad(
  cell: Cell,
  connections: number,
  entriesPerS: number,
): Promise<HalfLoad> {
  cell.signal.throwIfAborted()
  await cell.store.clear()
  const meter = new ProcessMeter(cell.system.pids())
  const probe = new QueryableProbe(cell.system, cell.store)
  const probing = probe.run()
  // It is awaited below; until then a failed query is no crash.
  probing.catch(() => undefined)
  const options = { loop: 'open', connections, durationMs: cell.windowMs, entriesPerS } as const
  const load = await cell.load.run(options).finally(() => probe.stop())
  const queryable = await probing
  await drain(cell, load.accepted + queryable.probes)
  const taken = meter.read(load.cpuMs)
  cell.note(
    `at ${perS(entriesPerS)}: acknowledged after ${load.latencyMs.p50.toFixed(1)} ms (p99 ${load.latencyMs.p99.toFixed(1)}), ` +
      `queryable ${queryable.p50Ms?.toFixed(0) ?? '–'} ms later (p99 ${queryable.p99Ms?.toFixed(0) ?? '–'})`,
  )
  return { load, queryable, taken }
}
