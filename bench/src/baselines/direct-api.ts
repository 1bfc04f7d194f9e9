// The direct baseline: no queue. Each request is one asynchronous insert. ClickHouse combines it with other inserts, and
// the request is answered when ClickHouse has written them.
import { clickhouseAccessFrom, clickhouseSettings, connectClickHouse, logsTable } from '@sluice/clickhouse'
import { commonSettings, createLogger, readSettings, runProcess } from '@sluice/runtime'
import { apiSettings, buildApp } from './app.ts'

/** Every request waits for a flush, so each concurrent request needs a connection. */
const INSERTS_IN_FLIGHT_MAX = 1_024
const INSERT_TIMEOUT_MS = 30_000

const config = readSettings({ ...commonSettings, ...clickhouseSettings, ...apiSettings }, process.env)

await runProcess({
  logger: createLogger('direct-api', config.LOG_LEVEL),
  deadlineMs: config.SHUTDOWN_DEADLINE_MS,
  start: async () => {
    const clickhouse = connectClickHouse(clickhouseAccessFrom(config), {
      requestTimeoutMs: INSERT_TIMEOUT_MS,
      connectionsMax: INSERTS_IN_FLIGHT_MAX,
    })
    const app = buildApp({
      apiKey: config.API_KEY,
      projectId: config.PROJECT_ID,
      store: async (values) => {
        await clickhouse.insert({
          table: logsTable,
          values,
          format: 'JSONEachRow',
          clickhouse_settings: {
            async_insert: 1,
            wait_for_async_insert: 1,
            date_time_input_format: 'best_effort',
          },
        })
      },
    })
    await app.listen({ host: '127.0.0.1', port: config.PORT })
    return {
      stop: async () => {
        await app.close()
        await clickhouse.close()
      },
    }
  },
})
