import { startStack } from '@sluice/local'
import { controlOf, pidsOf, profileEnvironment } from './processes.ts'
import type { System, SystemOptions } from './system.ts'

/** The service itself, as it runs elsewhere, with its defaults. */
export async function startSluice({ supervisor, profile }: SystemOptions): Promise<System> {
  const stack = await startStack({
    supervisor,
    api: { environment: profileEnvironment('api', profile) },
    worker: { environment: profileEnvironment('worker', profile) },
  })
  return {
    name: 'sluice',
    url: `${stack.apiUrl}/v1/logs`,
    apiKey: stack.apiKey,
    projectId: stack.projectId,
    clickhouse: stack.clickhouse,
    redisUrl: stack.redisUrl,
    pids: () => pidsOf(stack.processes),
    worker: controlOf(stack.processes.worker),
    remarks: [],
  }
}
