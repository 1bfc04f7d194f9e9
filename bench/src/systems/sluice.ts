import { startInstallation } from '@sluice/local'
import { controlOf, pidsOf, profileEnvironment, type System, type SystemOptions } from './system.ts'

/** Sluice with its default settings. */
export async function startSluice({ supervisor, profile }: SystemOptions): Promise<System> {
  const installation = await startInstallation({
    supervisor,
    api: { environment: profileEnvironment('api', profile) },
    worker: { environment: profileEnvironment('worker', profile) },
  })
  return {
    name: 'sluice',
    url: `${installation.apiUrl}/v1/logs`,
    apiKey: installation.apiKey,
    projectId: installation.projectId,
    clickhouse: installation.clickhouse,
    redisUrl: installation.redisUrl,
    pids: () => pidsOf(installation.processes),
    worker: controlOf(installation.processes.worker),
    remarks: [],
  }
}
