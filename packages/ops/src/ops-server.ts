import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Readiness } from '@sluice/runtime'
import { type DependencyStatus, withoutSecrets } from './dependencies.ts'
import type { Metrics } from './metrics.ts'

export interface OpsServerOptions {
  readonly host: string
  readonly port: number
  readonly readiness: () => Readiness
  /** What the process needs, for `/readyz`. Not every failure of one makes the process unready. */
  readonly dependencies: () => readonly DependencyStatus[]
  /** False if only a restart of the process can help. Default: always true. */
  readonly isAlive?: () => boolean
  /** Further JSON documents of the process, by path, for example `/overload`. */
  readonly pages?: ReadonlyMap<string, () => unknown>
  readonly metrics: Metrics['page']
}

export interface Answer {
  readonly status: number
  /** The Content-Type. */
  readonly type: string
  readonly text: string
}

/**
 * The HTTP server of each process for its operators: `/livez` (the process need not be restarted), `/readyz` (it can do its work),
 * `/metrics` and the further pages. All these responses come from memory: if a health check queried a database, an outage of the database
 * would take down every process.
 *
 * @returns its address, for example `http://127.0.0.1:41234`, and how to close it
 */
export async function startOpsServer(options: OpsServerOptions) {
  return listenForOperators(options.host, options.port, async (path) => {
    if (path === '/metrics') {
      const { contentType: type, text } = options.metrics
      return { status: 200, type, text: await text() }
    }
    const { status, body } = documentAt(path, options)
    return { status, type: 'application/json', text: JSON.stringify(body) }
  })
}

export async function listenForOperators(
  host: string,
  port: number,
  answer: (path: string) => Promise<Answer>,
): Promise<{ url: string; close: () => Promise<void> }> {
  const server = createServer((request, response) => {
    answer(request.url ?? '/').then(
      ({ status, type, text }) => response.writeHead(status, { 'content-type': type }).end(text),
      (error) => response.writeHead(500, { 'content-type': 'text/plain' }).end(String(error)),
    )
  })
  await once(server.listen(port, host), 'listening')
  const { port: bound } = server.address() as AddressInfo
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    close: async () => {
      server.closeAllConnections()
      await server[Symbol.asyncDispose]()
    },
  }
}

function documentAt(
  url: string,
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
