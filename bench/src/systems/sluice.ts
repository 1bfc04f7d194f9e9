import { startInstallation, startRedis, startServices } from '@sluice/local'
import {
  controlOf,
  pidsOf,
  profileEnvironment,
  type System,
  type SystemName,
  type SystemOptions,
} from './system.ts'

/** Sluice with its default settings. */
export function startSluice(options: SystemOptions): Promise<System> {
  return start('sluice', 0, options)
}

/** Sluice with replicas of Redis that confirm what is acknowledged. The CPU time of Redis includes them. */
export function startReplicatedSluice(replicas: 1 | 2): (options: SystemOptions) => Promise<System> {
  return (options) => start(replicas === 1 ? 'sluice-1-replica' : 'sluice-2-replicas', replicas, options)
}

async function start(
  name: SystemName,
  replicas: number,
  { supervisor, profile }: SystemOptions,
): Promise<System> {
  const services = await startServices({ supervisor })
  const followers = await Promise.all(
    Array.from({ length: replicas }, (_, i) =>
      startRedis(supervisor, { name: `replica-${i + 1}`, replicaOf: services.redisUrl }),
    ),
  )
  const settings = replicas === 0 ? {} : { REDIS_REPLICAS_ACK: String(replicas) }
  const installation = await startInstallation({
    services,
    api: { environment: { ...settings, ...profileEnvironment('api', profile) } },
    worker: { environment: { ...settings, ...profileEnvironment('worker', profile) } },
  })
  return {
    name,
    url: `${installation.apiUrl}/v1/logs`,
    apiKey: installation.apiKey,
    projectId: installation.projectId,
    clickhouse: installation.clickhouse,
    redisUrl: installation.redisUrl,
    pids: () =>
      pidsOf(
        installation.processes,
        followers.map(({ process }) => process),
      ),
    worker: controlOf(installation.processes.worker),
    remarks: [],
  }
}
