import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { type ClickHouseAccess, migrate, migrationsFolder, readMigrations } from '@sluice/clickhouse'
import {
  startInstallation,
  startRedis,
  startServices,
  type SupervisedProcess,
  type Supervisor,
} from '@sluice/local'
import type { BodyFormat } from './load/scenarios.ts'
import { startCollector } from './systems/collector.ts'
import type { BaselineSettings } from './systems/job-per-entry-main.ts'

export const systemNames = [
  'sluice',
  'job-per-entry',
  'sluice-1-replica',
  'sluice-2-replicas',
  'collector',
  'collector-persistent',
] as const
export type SystemName = (typeof systemNames)[number]
/** Measured unless others are chosen. */
export const defaultSystems: readonly SystemName[] = ['sluice', 'job-per-entry']
/** The systems that read only one format of bodies. */
export const onlyFormats: Readonly<Partial<Record<SystemName, BodyFormat>>> = {
  'job-per-entry': 'json',
  collector: 'otlp',
  'collector-persistent': 'otlp',
}

export const roles = ['api', 'worker', 'redis', 'clickhouse'] as const
/** A value for each role of a system. */
export type Roles<T> = Readonly<Record<(typeof roles)[number], T>>

/** A running system with all its processes and an empty table. It stops with its supervisor. */
export interface System {
  readonly name: SystemName
  /** The URL that accepts entries: a single one, or `{"logs": […]}`, or OTLP. */
  readonly url: string
  readonly apiKey: string
  readonly projectId: string
  readonly clickhouse: ClickHouseAccess
  /** Undefined if it has no queue in Redis, and no worker. */
  readonly redisUrl?: string
  readonly worker?: SupervisedProcess
  /** The current process ids of each role. A restarted worker has a new one, a stopped worker none. */
  pids(): Roles<readonly number[]>
}

/** The role that writes CPU profiles, and their folder. */
export interface Profile {
  readonly role: 'api' | 'worker'
  readonly folder: string
}

export interface SystemOptions {
  /** Owns the processes. Stopping it interrupts the benchmark. */
  readonly supervisor: Supervisor
  readonly profile?: Profile | undefined
}

export function startSystem(name: SystemName, options: SystemOptions): Promise<System> {
  if (name === 'job-per-entry') return startJobPerEntry(options)
  if (name === 'collector' || name === 'collector-persistent') return startOtherCollector(name, options)
  return startSluice(options, name)
}

/** Sluice with its default settings, or with replicas of Redis that confirm what is acknowledged. The CPU time of Redis includes them. */
export async function startSluice(
  { supervisor, profile }: SystemOptions,
  name: SystemName = 'sluice',
): Promise<Required<System>> {
  const replicas = Number(/\d/.exec(name)?.[0] ?? 0)
  const services = await startServices({ supervisor })
  const { port, password } = new URL(services.redisUrl)
  const lines = [`replicaof 127.0.0.1 ${port}`, `masterauth ${password}`]
  const followers = await Promise.all(
    Array.from({ length: replicas }, (_, i) =>
      startRedis(supervisor, { name: `replica-${i + 1}`, password, lines }),
    ),
  )
  const settings = replicas === 0 ? {} : { REDIS_REPLICAS_ACK: String(replicas) }
  const installation = await startInstallation({
    services,
    api: { environment: { ...settings, ...profileEnvironment('api', profile) } },
    worker: { environment: { ...settings, ...profileEnvironment('worker', profile) } },
  })
  const { processes } = installation
  return {
    ...installation,
    name,
    url: `${installation.apiUrl}/v1/logs`,
    worker: processes.worker,
    pids: () => pidsOf({ ...processes, replicas: followers.map(({ process }) => process) }),
  }
}

async function startOtherCollector(
  name: 'collector' | 'collector-persistent',
  { supervisor }: SystemOptions,
): Promise<System> {
  const { processes, ...system } = await startCollector(supervisor, name)
  return { ...system, name, pids: () => pidsOf(processes) }
}

/** The same Redis and ClickHouse as Sluice, with one BullMQ job per entry. */
async function startJobPerEntry({ supervisor, profile }: SystemOptions): Promise<System> {
  const { redisUrl, clickhouse, processes } = await startServices({ supervisor })
  await migrate(clickhouse, await readMigrations(migrationsFolder))
  const settings = { redisUrl, clickhouse, apiKey: randomBytes(24).toString('base64url'), projectId: 'bench' }
  const start = async (role: Profile['role']): Promise<{ process: SupervisedProcess; url: string }> => {
    const port = await supervisor.ports.free()
    const url = `http://127.0.0.1:${port}`
    const baseline: BaselineSettings = { ...settings, port }
    const started = await supervisor.start({
      role,
      name: role,
      command: process.execPath,
      args: [fileURLToPath(new URL('systems/job-per-entry-main.ts', import.meta.url)), role],
      cwd: supervisor.dataDir,
      environment: {
        NODE_ENV: 'production',
        BASELINE: JSON.stringify(baseline),
        ...profileEnvironment(role, profile),
      },
      isReady: async (signal) => (await fetch(`${url}/readyz`, { signal })).ok,
    })
    return { process: started, url }
  }
  const [api, worker] = await Promise.all([start('api'), start('worker')])
  return {
    ...settings,
    name: 'job-per-entry',
    url: `${api.url}/v1/logs`,
    worker: worker.process,
    pids: () => pidsOf({ ...processes, api: api.process, worker: worker.process }),
  }
}

/** Environment variables that make Node write a CPU profile when the process exits; none for the other roles. */
function profileEnvironment(role: Profile['role'], profile: Profile | undefined): Record<string, string> {
  if (profile?.role !== role) return {}
  return { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${JSON.stringify(profile.folder)}` }
}

function pidsOf({
  api,
  worker,
  redis,
  clickhouse,
  replicas = [],
}: Partial<Roles<SupervisedProcess>> & { replicas?: readonly SupervisedProcess[] }): ReturnType<
  System['pids']
> {
  return {
    api: running([api]),
    worker: running([worker]),
    redis: running([redis, ...replicas]),
    clickhouse: running([clickhouse]),
  }
}

/** The ids of those that run. */
function running(processes: readonly (SupervisedProcess | undefined)[]): number[] {
  return processes.flatMap((process) => process?.pid ?? [])
}
