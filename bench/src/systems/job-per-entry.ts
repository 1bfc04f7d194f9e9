import { clickhouseEnvironment, startServices } from '@sluice/local'
import { baselineProject, createApiKey, createDatabase, startBaselineProcess } from './baseline-process.ts'
import { controlOf, pidsOf, profileEnvironment, type System, type SystemOptions } from './system.ts'

/** The job-per-entry baseline: the same Redis and ClickHouse as Sluice, with one BullMQ job per entry. */
export async function startJobPerEntry({ supervisor, profile }: SystemOptions): Promise<System> {
  const services = await startServices({ supervisor })
  const clickhouse = await createDatabase(services.clickhouse, 'job_per_entry')
  const apiKey = createApiKey()
  const [api, worker] = await Promise.all([
    startBaselineProcess(supervisor, {
      role: 'api',
      name: 'api',
      file: 'job-per-entry-api.ts',
      portVariable: 'PORT',
      environment: {
        REDIS_URL: services.redisUrl,
        API_KEY: apiKey,
        PROJECT_ID: baselineProject,
        ...profileEnvironment('api', profile),
      },
    }),
    startBaselineProcess(supervisor, {
      role: 'worker',
      name: 'worker',
      file: 'job-per-entry-worker.ts',
      portVariable: 'OPS_PORT',
      environment: {
        REDIS_URL: services.redisUrl,
        ...clickhouseEnvironment(clickhouse),
        ...profileEnvironment('worker', profile),
      },
    }),
  ])
  const processes = { ...services.processes, api: api.process, worker: worker.process }
  return {
    name: 'job-per-entry',
    url: `${api.url}/v1/logs`,
    apiKey,
    projectId: baselineProject,
    clickhouse,
    redisUrl: services.redisUrl,
    pids: () => pidsOf(processes),
    worker: controlOf(worker.process),
    remarks: [],
  }
}
