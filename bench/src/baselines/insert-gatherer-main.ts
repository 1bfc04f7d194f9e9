// Stands in for ClickHouse's queue of asynchronous inserts where the engine has none: an HTTP server in front of it that
// takes inserts and nothing else.
import { clickhouseSettings, commonSettings, createLogger, readSettings, runProcess } from '@sluice/runtime'
import { Agent, createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { InsertGatherer } from './insert-gatherer.ts'
import { apiSettings } from './settings.ts'

const config = readSettings({ ...commonSettings, ...clickhouseSettings, ...apiSettings }, process.env)
/** ClickHouse's default `async_insert_threads`. */
const INSERTS_IN_FLIGHT_MAX = 16

async function answer(
  gatherer: InsertGatherer,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { url = '/', headers } = request
  if (url === '/readyz') {
    response.end('ok')
    return
  }
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  const body = Buffer.concat(parts)
  const inserted = await gatherer.insert({ url, authorization: headers.authorization ?? '', body })
  response.writeHead(inserted.status, { 'content-length': inserted.body.length }).end(inserted.body)
}

const logger = createLogger('insert-gatherer', config.LOG_LEVEL)

await runProcess({
  logger,
  deadlineMs: config.SHUTDOWN_DEADLINE_MS,
  start: async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: INSERTS_IN_FLIGHT_MAX })
    const gatherer = new InsertGatherer(config.CLICKHOUSE_URL, agent)
    const server = createServer((request, response) => {
      answer(gatherer, request, response).catch((error: unknown) => {
        logger.warn({ err: error }, 'insert failed')
        response.writeHead(500).end()
      })
    })
    await new Promise<void>((resolve) => server.listen(config.PORT, '127.0.0.1', resolve))
    return {
      stop: async () => {
        await new Promise<void>((resolve) => {
          server.close(() => resolve())
          server.closeIdleConnections()
        })
        agent.destroy()
      },
    }
  },
})
