import type { Supervisor } from '@sluice/local'
import { LoadProcess } from '../load/load-process.ts'
import { measureDisk, type DiskTimes } from '../measure/disk.ts'
import { type ProcessSize, sizeOf } from '../measure/process-size.ts'
import { redisInfo } from '../measure/redis-memory.ts'
import { Store } from '../measure/store.ts'
import type { Scenario } from '../scenarios.ts'
import { startSluice } from '../systems/sluice.ts'
import type { Roles, System } from '../systems/system.ts'

export interface SoakOptions {
  readonly scenario: Scenario
  readonly minutes: number
  readonly entriesPerS: number
}

/** What was seen at the end of a minute, while the load went on. */
export interface SoakSample {
  readonly minute: number
  readonly acceptedPerS: number
  /** Requests that were not answered with a 202. */
  readonly refused: number
  readonly ackP50Ms: number
  readonly ackP99Ms: number
  /** Entries that were accepted and not yet stored. */
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
  /** Before the load. */
  readonly disk: DiskTimes
  readonly samples: readonly SoakSample[]
  readonly accepted: number
  readonly stored: number
}

const MINUTE_MS = 60_000
const SEED = 42
const DRAIN_DEADLINE_MS = 120_000
/** Twice what half of the load needs on two cores; a soak looks for growth, not for the highest rate. */
const CONNECTIONS = 48

/**
 * Keeps a steady load on the service, and looks at it once a minute: what grows over an hour is a leak.
 *
 * @throws when what was accepted is not stored within two minutes of the end
 */
export async function soak(
  options: SoakOptions,
  supervisor: Supervisor,
  note: (sample: SoakSample) => void,
): Promise<SoakReport> {
  const at = new Date().toISOString()
  const disk = await measureDisk(supervisor.dataDir)
  const system = await startSluice({ supervisor, profile: undefined })
  const store = new Store(system.clickhouse)
  const load = new LoadProcess()
  try {
    const { url, apiKey } = system
    await load.prepare({ url, apiKey, requests: options.scenario.requests, corpus: undefined, seed: SEED })
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
        acceptedPerS: (result.acceptedInWindow / result.windowMs) * 1_000,
        refused: Object.values(result.refused).reduce((sum, count) => sum + count, 0),
        ackP50Ms: result.latencyMs.p50,
        ackP99Ms: result.latencyMs.p99,
        ...(await lookAt(system, store, accepted)),
      }
      samples.push(sample)
      note(sample)
    }
    const drained = { deadlineMs: DRAIN_DEADLINE_MS, signal: new AbortController().signal }
    const stored = await store.untilCount(accepted, drained)
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

async function lookAt(
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
    // `db0:keys=…,expires=…`; there is no such line while it is empty.
    redisKeys: Number(/keys=(\d+)/.exec((await redisInfo(redisUrl, 'keyspace')).get('db0') ?? '')?.[1] ?? 0),
    redisBytes: Number((await redisInfo(redisUrl, 'memory')).get('used_memory')),
    clickhouseParts: Number(parts?.parts),
  }
}
