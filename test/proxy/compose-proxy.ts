import type { SupervisedProcess, Supervisor } from '@sluice/local'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { NameServer } from './name-server.ts'

export interface ComposeProxyOptions {
  readonly nameServer: NameServer
  /** The port of the APIs, on each address of the name server. */
  readonly apiPort: number
  /** The port of the query processes, on the same addresses. */
  readonly queryPort?: number
  /** A folder with `fullchain.pem` and `privkey.pem`. Default: without TLS. */
  readonly certificatesFolder?: string
}

/** nginx with the configuration of Compose. */
export interface ComposeProxy {
  readonly process: SupervisedProcess
  readonly port: number
  /** Where it forwards to the query processes. */
  readonly explorerPort: number
  /** Where the health check of Compose asks. */
  readonly healthPort: number
}

const root = new URL('../../deploy/compose/', import.meta.url)
const READY_DEADLINE_MS = 10_000

/**
 * Starts the `nginx` of the PATH with the files of deploy/compose. Only what belongs to a container is replaced: paths, ports and the
 * address of the name server.
 */
export async function startComposeProxy(
  supervisor: Supervisor,
  { nameServer, apiPort, queryPort = apiPort, certificatesFolder }: ComposeProxyOptions,
): Promise<ComposeProxy> {
  const { ports } = supervisor
  const [port, explorerPort, healthPort] = [await ports.free(), await ports.free(), await ports.free()]
  const folder = join(supervisor.dataDir, `proxy-${port}`)
  mkdirSync(folder)
  const listen = certificatesFolder === undefined ? 'listen.conf' : 'listen-tls.conf'
  const replacements: readonly (readonly [from: string, to: string])[] = [
    ['/tmp/', `${folder}/`],
    ['/etc/sluice/certificates/', `${certificatesFolder ?? ''}/`],
    ['/etc/sluice/', `${folder}/`],
    ['127.0.0.11 ', `127.0.0.1:${nameServer.port} `],
    ['api:3000 ', `api:${apiPort} `],
    ['127.0.0.1:8081;', `127.0.0.1:${healthPort};`],
    ['query:3001 ', `query:${queryPort} `],
    ['listen 8080 ', `listen 127.0.0.1:${port} `],
    ['listen 8082', `listen 127.0.0.1:${explorerPort}`],
    ['{ 8082 ', `{ ${explorerPort} `],
  ]
  const copy = (name: string, as: string): void => {
    const text = readFileSync(new URL(name, root), 'utf8')
    const replaced = replacements.reduce((result, [from, to]) => result.replaceAll(from, to), text)
    writeFileSync(join(folder, as), replaced)
  }
  copy('nginx.conf', 'nginx.conf')
  copy(listen, 'listen.conf')
  const process = await supervisor.start({
    // Stopped together with the APIs.
    role: 'api',
    name: `proxy-${port}`,
    command: 'nginx',
    args: ['-e', 'stderr', '-c', join(folder, 'nginx.conf'), '-g', 'daemon off;'],
    cwd: folder,
    environment: { PATH: globalThis.process.env['PATH'] ?? '' },
    readyDeadlineMs: READY_DEADLINE_MS,
    isReady: async (signal) => {
      const response = await fetch(`http://127.0.0.1:${healthPort}/readyz`, { signal })
      await response.body?.cancel()
      return response.ok
    },
  })
  return { process, port, explorerPort, healthPort }
}
