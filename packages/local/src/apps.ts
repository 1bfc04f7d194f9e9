import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import type { ClickHouseAccess } from '@sluice/clickhouse'
import { stopDeadlinesMs, type SupervisedProcess } from './supervised-process.ts'
import type { Supervisor } from './supervisor.ts'

export interface App {
  readonly process: SupervisedProcess
  readonly opsUrl: string
}

export type ApiApp = App & { readonly url: string }

export interface AppSettings {
  readonly opsPort?: number | undefined
  readonly environment?: NodeJS.ProcessEnv | undefined
}

export interface AppOptions extends AppSettings {
  readonly redisUrl: string
  readonly prefix: string
  /** The name of the process and of its log. Only needed for a second process of the same role. */
  readonly name?: string | undefined
  /** What the start waits for. Default: `ready`. A process with a fault that it reports is alive, and not ready. */
  readonly until?: 'alive' | 'ready' | undefined
}

/** Where a process listens: on exactly this port, or a free one, preferably `preferredPort`. */
export interface Address {
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly preferredPort?: number | undefined
}

type WorkerOptions = AppOptions & { readonly clickhouse: ClickHouseAccess }

/**
 * As in the images. Bodies are Buffers. In Node's default young generation of 32 MB they accumulate until V8 runs a major GC, every quarter
 * of a second at full load. With 16 MB they are freed before. V8's four threads for GC compete with the event loop on few processors: a
 * single one halves the slowest responses under attack (see docs/overload.md).
 *
 * V8 starts a major GC when heap and Buffers have grown by a factor, which it makes as small as 1.1 because these GCs collect little of the
 * heap. They collect Buffers, which cost nothing to keep. A factor of four, V8's upper bound, saves a tenth of the API's CPU and half of the
 * worker's, and neither takes more memory.
 */
const FEWER_MAJOR_GCS = '--heap-growing-percent=300'
export const nodeOptions = {
  api: ['--max-semi-space-size=16', '--v8-pool-size=1', FEWER_MAJOR_GCS],
  worker: [FEWER_MAJOR_GCS],
  query: [],
} as const

/** On a local machine there are no other users to protect, and a load test is intended. */
const unlimited = { RATE_LIMIT_ENTRIES_PER_SECOND: '0', RATE_LIMIT_BYTES_PER_SECOND: '0' }

/** Starts an API process, and waits until it is ready. */
export function startApi(supervisor: Supervisor, options: AppOptions & Address): Promise<ApiApp> {
  return startOn(supervisor, options, (HOST, PORT) =>
    startApp(supervisor, 'api', options, { ...unlimited, ...options.environment, HOST, PORT }),
  )
}

export function startWorker(supervisor: Supervisor, options: WorkerOptions): Promise<App> {
  const environment = { ...clickhouseEnvironment(options.clickhouse), ...options.environment }
  return startApp(supervisor, 'worker', options, environment)
}

export function startQuery(supervisor: Supervisor, options: WorkerOptions & Address): Promise<ApiApp> {
  const environment = { ...clickhouseEnvironment(options.clickhouse), ...options.environment }
  return startOn(supervisor, options, (QUERY_HOST, QUERY_PORT) =>
    startApp(supervisor, 'query', options, { ...environment, QUERY_HOST, QUERY_PORT }),
  )
}

async function startOn(
  { ports }: Supervisor,
  { host = '127.0.0.1', port: chosen, preferredPort }: Address,
  start: (host: string, port: string) => Promise<App>,
): Promise<ApiApp> {
  const startAt = async (port: number): Promise<ApiApp> => ({
    ...(await start(host, String(port))),
    url: urlOf(host, port),
  })
  return chosen === undefined ? ports.startOn(preferredPort, startAt) : startAt(chosen)
}

/** The address at which this machine reaches a process that listens on a host. */
function urlOf(host: string, port: number): string {
  const anyHosts: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }
  return `http://${anyHosts[host] ?? (host.includes(':') ? `[${host}]` : host)}:${port}`
}

export const clickhouseEnvironment = ({ url, username, password, database }: ClickHouseAccess) => ({
  CLICKHOUSE_URL: url,
  CLICKHOUSE_USERNAME: username,
  CLICKHOUSE_PASSWORD: password,
  CLICKHOUSE_DATABASE: database,
})

async function startApp(
  supervisor: Supervisor,
  role: 'api' | 'worker' | 'query',
  { name = role, opsPort: preferred, redisUrl, prefix, until }: AppOptions,
  environment: NodeJS.ProcessEnv,
): Promise<App> {
  const entry = createRequire(import.meta.url).resolve(`@sluice/${role}/main`)
  return supervisor.ports.startOn(preferred, async (opsPort) => {
    const opsUrl = `http://127.0.0.1:${opsPort}`
    const process = await supervisor.start({
      role,
      name,
      command: globalThis.process.execPath,
      args: [...nodeOptions[role], entry],
      cwd: dirname(entry),
      environment: {
        LOG_LEVEL: 'info',
        // Half a second before the supervisor kills the process.
        SHUTDOWN_DEADLINE_MS: String(stopDeadlinesMs[role] - 500),
        REDIS_URL: redisUrl,
        SLUICE_PREFIX: prefix,
        ...environment,
        OPS_HOST: '127.0.0.1',
        OPS_PORT: String(opsPort),
      },
      isReady: async (signal) => {
        const response = await fetch(`${opsUrl}/${until === 'alive' ? 'livez' : 'readyz'}`, { signal })
        await response.body?.cancel()
        return response.ok
      },
    })
    return { process, opsUrl }
  })
}
