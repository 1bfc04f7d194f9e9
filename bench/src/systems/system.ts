import type { ClickHouseAccess } from '@sluice/clickhouse'
import type { SupervisedProcess, Supervisor } from '@sluice/local'

export const systemNames = [
  'sluice',
  'job-per-entry',
  'direct',
  'sluice-1-replica',
  'sluice-2-replicas',
] as const
/** Measured unless others are chosen. */
export const defaultSystems = ['sluice', 'job-per-entry', 'direct'] as const
export type SystemName = (typeof systemNames)[number]

/** A value for each role of a system. A system without a queue has neither worker nor Redis. */
export interface Roles<T> {
  readonly api: T
  readonly worker?: T
  readonly redis?: T
  readonly clickhouse: T
}

/** A running system with all its processes and an empty table. It stops with its supervisor. */
export interface System {
  readonly name: SystemName
  /** The URL that accepts entries: a single one, or `{"logs": […]}`. */
  readonly url: string
  readonly apiKey: string
  readonly projectId: string
  readonly clickhouse: ClickHouseAccess
  readonly redisUrl: string | undefined
  /** The current process ids of each role. A restarted worker has a new one. */
  pids(): Roles<readonly number[]>
  /** Undefined for a system without a worker. */
  readonly worker: WorkerControl | undefined
  /** Peculiarities of this setup that a reader of the figures must know. */
  readonly remarks: readonly string[]
}

export interface WorkerControl {
  stop(): Promise<void>
  /** Resolves when the worker is ready. */
  start(): Promise<void>
}

export interface SystemOptions {
  /** Owns the processes. Stopping it interrupts the benchmark. */
  readonly supervisor: Supervisor
  /** The role that writes CPU profiles, and their folder. */
  readonly profile: Profile | undefined
}

export interface Profile {
  readonly role: 'api' | 'worker'
  readonly folder: string
}

/** Environment variables that make Node write a CPU profile when the process exits; none for the other roles. */
export function profileEnvironment(
  role: Profile['role'],
  profile: Profile | undefined,
): Record<string, string> {
  if (profile?.role !== role) return {}
  return { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${JSON.stringify(profile.folder)}` }
}

/** @param replicas of Redis */
export function pidsOf(
  processes: Roles<SupervisedProcess>,
  replicas: readonly SupervisedProcess[] = [],
): Roles<readonly number[]> {
  const { api, worker, redis, clickhouse } = processes
  return {
    api: [pidOf(api)],
    clickhouse: [pidOf(clickhouse)],
    // A worker that was stopped on purpose is left out of the measurement.
    ...(worker?.pid === undefined ? {} : { worker: [worker.pid] }),
    ...(redis === undefined ? {} : { redis: [redis, ...replicas].map(pidOf) }),
  }
}

export function pidOf(process: SupervisedProcess): number {
  const { pid } = process
  if (pid === undefined) throw new Error(`${process.name} has exited; its log is ${process.logFile}`)
  return pid
}

export function controlOf(worker: SupervisedProcess): WorkerControl {
  return { stop: () => worker.stop(), start: () => worker.start() }
}
