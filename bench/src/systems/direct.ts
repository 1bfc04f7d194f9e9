import { type ClickHouseAccess, connectClickHouse } from '@sluice/clickhouse'
import { clickhouseEnvironment, startClickHouse, type SupervisedProcess } from '@sluice/local'
import { baselineProject, createApiKey, createDatabase, startBaselineProcess } from './baseline-process.ts'
import { pidOf, pidsOf, profileEnvironment, type System, type SystemOptions } from './system.ts'

const QUERY_TIMEOUT_MS = 10_000
const REMARK =
  'the embedded ClickHouse has no queue of asynchronous inserts; a separate process in front of it combines inserts ' +
  "with the server's default limits, and its CPU time and memory count as ClickHouse's"

/** The direct baseline: Fastify and ClickHouse, with nothing in between but the queue of asynchronous inserts. */
export async function startDirect({ supervisor, profile }: SystemOptions): Promise<System> {
  const server = await startClickHouse(supervisor)
  const clickhouse = await createDatabase(server.access, 'direct')
  const gatherer = (await hasAsyncInsertQueue(clickhouse))
    ? undefined
    : await startBaselineProcess(supervisor, {
        role: 'clickhouse',
        name: 'insert-gatherer',
        file: 'insert-gatherer.ts',
        portVariable: 'PORT',
        environment: clickhouseEnvironment(clickhouse),
      })
  const apiKey = createApiKey()
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

/** An engine without the queue accepts `async_insert` and inserts immediately. Only flushing the queue fails there. */
async function hasAsyncInsertQueue(access: ClickHouseAccess): Promise<boolean> {
  const client = connectClickHouse(access, { requestTimeoutMs: QUERY_TIMEOUT_MS, connectionsMax: 1 })
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
