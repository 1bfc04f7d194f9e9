import { startClickHouse, type SupervisedProcess } from '@sluice/local'
import { connectClickHouse, type ClickHouseAccess } from '@sluice/runtime'
import {
  baselineProject,
  clickhouseEnvironment,
  makeKey,
  makeTable,
  startBaselineProcess,
} from './baseline-process.ts'
import { pidOf, pidsOf, profileEnvironment } from './processes.ts'
import type { System, SystemOptions } from './system.ts'

const QUERY_DEADLINE_MS = 10_000
const REMARK =
  'this ClickHouse (the embedded engine) has no queue of asynchronous inserts, so a process of its own in front of it ' +
  "gathers them, with the server's defaults; it is counted to ClickHouse"

/** Fastify in front of ClickHouse, and nothing between them but what gathers asynchronous inserts. */
export async function startDirect({ supervisor, profile }: SystemOptions): Promise<System> {
  const server = await startClickHouse(supervisor)
  const clickhouse = await makeTable(server.access, 'direct')
  const gatherer = (await gathersInserts(clickhouse))
    ? undefined
    : await startBaselineProcess(supervisor, {
        role: 'clickhouse',
        name: 'insert-gatherer',
        file: 'insert-gatherer-main.ts',
        portVariable: 'PORT',
        environment: clickhouseEnvironment(clickhouse),
      })
  const apiKey = makeKey()
  const api = await startBaselineProcess(supervisor, {
    role: 'api',
    name: 'api',
    file: 'direct-api.ts',
    portVariable: 'PORT',
    environment: {
      ...clickhouseEnvironment({ ...clickhouse, url: gatherer?.url ?? clickhouse.url }),
      API_KEY: apiKey,
      PROJECT_ID: baselineProject,
      ...profileEnvironment('api', profile),
    },
  })
  return {
    name: 'direct',
    url: `${api.url}/v1/logs`,
    apiKey,
    projectId: baselineProject,
    clickhouse,
    redisUrl: undefined,
    pids: () => pidsWith(gatherer?.process, { api: api.process, clickhouse: server.process }),
    worker: undefined,
    remarks: gatherer === undefined ? [] : [REMARK],
  }
}

function pidsWith(
  gatherer: SupervisedProcess | undefined,
  processes: { api: SupervisedProcess; clickhouse: SupervisedProcess },
): ReturnType<System['pids']> {
  const pids = pidsOf(processes)
  return gatherer === undefined ? pids : { ...pids, clickhouse: [...pids.clickhouse, pidOf(gatherer)] }
}

/** Without a queue ClickHouse takes `async_insert` for granted, inserts at once, and refuses to flush what is not there. */
async function gathersInserts(access: ClickHouseAccess): Promise<boolean> {
  const client = connectClickHouse(access, { requestTimeoutMs: QUERY_DEADLINE_MS, connectionsMax: 1 })
  try {
    await client.command({ query: 'SYSTEM FLUSH ASYNC INSERT QUEUE' })
    return true
  } catch (error) {
    if (error instanceof Error && error.message.includes('not initialized')) return false
    throw error
  } finally {
    await client.close()
  }
}
