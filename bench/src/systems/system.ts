import type { Supervisor } from '@sluice/local'
import type { ClickHouseAccess } from '@sluice/runtime'

export const systemNames = ['sluice', 'job-per-entry', 'direct'] as const
export type SystemName = (typeof systemNames)[number]

/** A value for each role that a system has. One without a queue has neither worker nor Redis. */
export interface Roles<T> {
  readonly api: T
  readonly worker?: T
  readonly redis?: T
  readonly clickhouse: T
}

/** A system that runs, with everything it needs, and nothing stored yet. It ends with its supervisor. */
export interface System {
  readonly name: SystemName
  /** Where entries are posted to, one or `{"logs": […]}`. */
  readonly url: string
  readonly apiKey: string
  readonly projectId: string
  readonly clickhouse: ClickHouseAccess
  readonly redisUrl: string | undefined
  /** The process ids of each role, as they are now: a worker that was restarted has another one. */
  pids(): Roles<readonly number[]>
  /** Undefined where there is none. */
  readonly worker: WorkerControl | undefined
  /** What to know of how the system runs here before believing its figures. */
  readonly remarks: readonly string[]
}

export interface WorkerControl {
  stop(): Promise<void>
  /** Resolves when it works. */
  start(): Promise<void>
}

export interface SystemOptions {
  /** Owns the processes: whoever interrupts the benchmark stops it. */
  readonly supervisor: Supervisor
  /** Whose CPU profile to write, and where. */
  readonly profile: Profile | undefined
}

export interface Profile {
  readonly role: 'api' | 'worker'
  readonly folder: string
}
