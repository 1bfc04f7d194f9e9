import type { SupervisedProcess } from '@sluice/local'
import type { Profile, Roles, WorkerControl } from './system.ts'

/** The environment that makes Node write a CPU profile when the process ends, if it is the one to be profiled. */
export function profileEnvironment(
  role: Profile['role'],
  profile: Profile | undefined,
): Record<string, string> {
  if (profile?.role !== role) return {}
  return { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${JSON.stringify(profile.folder)}` }
}

export function pidsOf(processes: Roles<SupervisedProcess>): Roles<readonly number[]> {
  const { api, worker, redis, clickhouse } = processes
  return {
    api: [pidOf(api)],
    clickhouse: [pidOf(clickhouse)],
    // A worker that is stopped on purpose is measured as nothing.
    ...(worker?.pid === undefined ? {} : { worker: [worker.pid] }),
    ...(redis === undefined ? {} : { redis: [pidOf(redis)] }),
  }
}

export function pidOf(process: SupervisedProcess): number {
  const { pid } = process
  if (pid === undefined) throw new Error(`${process.name} has ended; its log is ${process.logFile}`)
  return pid
}

export function controlOf(worker: SupervisedProcess): WorkerControl {
  return { stop: () => worker.stop(), start: () => worker.start() }
}
