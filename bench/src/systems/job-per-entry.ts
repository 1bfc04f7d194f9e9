import { startServices } from '@sluice/local'
import {
  baselineProject,
  clickhouseEnvironment,
  makeKey,
  makeTable,
  startBaselineProcess,
} from './baseline-process.ts'
import { controlOf, pidsOf, profileEnvironment } from './processes.ts'
import type { System, SystemOptions } from './system.ts'

/** The same services as the service's own, with one BullMQ job for each entry between them. */
export async function startJobPerEntry({ supervisor, profile }: SystemOptions): Promise<System> {
  const services = await startServices({ supervisor })
  const clickhouse = await makeTable(services.clickhouse, 'job_per_entry')
  const apiKey = makeKey()
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
