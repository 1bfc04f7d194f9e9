import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Readiness } from '@sluice/runtime'
import { type DependencyStatus, withoutSecrets } from './dependencies.ts'
import type { Metrics } from './metrics.ts'

interface OpsServerOptions {
  readonly host: string
  readonly port: number
  readonly readiness: () => Readiness
  /** What the process needs, for `/readyz`. Not every failure of one makes the process unready. */
  readonly dependencies: () => readonly DependencyStatus[]
  /** False if only a restart of the process can help. Default: always true. */
  readonly isAlive?: () => boolean
  /** Further JSON documents of the process, by path, for example `/overload`. */
  readonly pages?: ReadonlyMap<string, () => unknown>
  /** The page `/metrics`. */
  readonly metrics: Metrics['page']
}

/**
 * The HTTP server of each process for its operators: `/livez` (the process need not be restarted), `/readyz` (it can do its work),
 * `/metrics` and the further pages. All these responses come from memory: if a health check queried a database, an outage of the database
 * would take down every process.
 *
 * @returns its address, for example `http://127.0.0.1:41234`, and how to close it
 */
export async function startOpsServer(options: OpsServerOptions) {
  const server = createServer((request, response) => {
    if (request.url === '/metrics') {
      void sendMetrics(response, options.metrics)
      return
    }
    const { status, body } = documentAt(request.url, options)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function sendMetrics(response: ServerResponse, { contentType, text }: Metrics['page']): Promise<void> {
  try {
    const body = await text()
    response.writeHead(200, { 'content-type': contentType }).end(body)
  } catch (error) {
    response.writeHead(500, { 'content-type': 'text/plain' }).end(String(error))
  }
}

function documentAt(
  url = '/',
  { readiness, isAlive = () => true, pages, dependencies }: OpsServerOptions,
): { status: number; body: unknown } {
  if (url === '/livez')
    return isAlive() ? { status: 200, body: { status: 'ok' } } : { status: 503, body: { status: 'stalled' } }
  const page = pages?.get(url)
  if (page !== undefined) return { status: 200, body: page() }
  if (url !== '/readyz') return { status: 404, body: { status: 'not found' } }
  const { ready, reasons } = readiness()
  const state = ready ? { status: 'ok' } : { status: 'unavailable', reasons: reasons.map(withoutSecrets) }
  return { status: ready ? 200 : 503, body: { ...state, dependencies: dependencies() } }
}
