import type { Supervisor } from '@sluice/local'
import { LoadProcess } from '../load/load-process.ts'
import { acceptedPerS } from '../load/protocol.ts'
import type { Scenario } from '../load/scenarios.ts'
import { type DiskTimes, measureDisk } from '../measure/disk.ts'
import { type ProcessSize, sizeOf } from '../measure/process-meter.ts'
import { redisInfo } from '../measure/redis-info.ts'
import { Store } from '../measure/store.ts'
import { startSluice } from '../systems/sluice.ts'
import type { Roles, System } from '../systems/system.ts'

export interface SoakOptions {
  readonly scenario: Scenario
  readonly minutes: number
  readonly entriesPerS: number
}

/** The measurements of one minute of load. */
export interface SoakSample {
  readonly minute: number
  readonly acceptedPerS: number
  /** Requests without a 202. */
  readonly refused: number
  readonly ackP50Ms: number
  readonly ackP99Ms: number
  /** Entries that were accepted but not yet stored. */
  readonly backlog: number
  readonly sizes: Roles<ProcessSize>
  readonly redisKeys: number
  readonly redisBytes: number
  readonly clickhouseParts: number
}

export interface SoakReport {
  readonly at: string
  readonly scenario: string
  readonly entriesPerS: number
  /** Measured before the load. */
  readonly disk: DiskTimes
  readonly samples: readonly SoakSample[]
  readonly accepted: number
  readonly stored: number
}

const MINUTE_MS = 60_000
const SEED = 42
const DRAIN_DEADLINE_MS = 120_000
/** Twice what half of the load needs on two cores. A soak test detects growth; it need not reach the highest rate. */
const CONNECTIONS = 48

/**
 * Keeps a steady load on Sluice and samples its size once a minute. Anything that grows over an hour is a leak.
 *
 * @throws NotDrainedError when accepted entries are not stored within two minutes after the end
 */
export async function runSoak(
  options: SoakOptions,
  supervisor: Supervisor,
  onSample: (sample: SoakSample) => void,
): Promise<SoakReport> {
  const at = new Date().toISOString()
  const disk = await measureDisk(supervisor.dataDir)
  const system = await startSluice({ supervisor, profile: undefined })
  const store = new Store(system.clickhouse)
  const load = new LoadProcess()
  try {
    const { url, apiKey } = system
    const { requests, format } = options.scenario
    await load.prepare({ url, apiKey, requests, format, corpus: undefined, seed: SEED })
    const samples: SoakSample[] = []
    let accepted = 0
    for (let minute = 1; minute <= options.minutes; minute += 1) {
      const { entriesPerS } = options
      const result = await load.run({
        loop: 'open',
        connections: CONNECTIONS,
        durationMs: MINUTE_MS,
        entriesPerS,
      })
      accepted += result.accepted
      const sample: SoakSample = {
        minute,
        acceptedPerS: acceptedPerS(result),
        refused: Object.values(result.rejected).reduce((sum, count) => sum + count, 0),
        ackP50Ms: result.latencyMs.p50,
        ackP99Ms: result.latencyMs.p99,
        ...(await sampleSystem(system, store, accepted)),
      }
      samples.push(sample)
      onSample(sample)
    }
    const stored = await store.waitForCount(accepted, {
      deadlineMs: DRAIN_DEADLINE_MS,
      signal: new AbortController().signal,
    })
    return {
      at,
      scenario: options.scenario.name,
      entriesPerS: options.entriesPerS,
      disk,
      samples,
      accepted,
      stored,
    }
  } finally {
    await load.stop()
    await store.close()
  }
}

async function sampleSystem(
  system: System,
  store: Store,
  accepted: number,
): Promise<Pick<SoakSample, 'backlog' | 'sizes' | 'redisKeys' | 'redisBytes' | 'clickhouseParts'>> {
  const { api, worker = [], redis = [], clickhouse } = system.pids()
  const backlog = accepted - (await store.count())
  const [parts] = await store.select<{ parts: string }>(
    'SELECT count() AS parts FROM system.parts WHERE active AND database = currentDatabase()',
  )
  const redisUrl = system.redisUrl ?? ''
  return {
    backlog,
    sizes: {
      api: sizeOf(api),
      worker: sizeOf(worker),
      redis: sizeOf(redis),
      clickhouse: sizeOf(clickhouse),
    },
    // `db0:keys=…,expires=…`. The line is missing while the database is empty.
    redisKeys: Number(/keys=(\d+)/.exec((await redisInfo(redisUrl, 'keyspace')).get('db0') ?? '')?.[1] ?? 0),
    redisBytes: Number((await redisInfo(redisUrl, 'memory')).get('used_memory')),
    clickhouseParts: Number(parts?.parts),
  }
}
