import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import type { ClickHouseAccess } from '@sluice/clickhouse'
import { stopDeadlinesMs, type SupervisedProcess } from './supervised-process.ts'
import type { Supervisor } from './supervisor.ts'

export interface App {
  readonly process: SupervisedProcess
  /** The address of `/livez` and `/readyz`. */
  readonly opsUrl: string
}

export interface ApiApp extends App {
  readonly url: string
}

export interface AppOptions {
  readonly redisUrl: string
  /** Separates installations that share a Redis. */
  readonly prefix: string
  /** The name of the process and of its log. Only needed for a second process of the same role. */
  readonly name?: string | undefined
  readonly opsPort?: number | undefined
  /** Additional environment variables. They override the settings of this file. */
  readonly environment?: Readonly<Record<string, string>> | undefined
  /** The file to run instead of the app's entry file. */
  readonly entry?: string | undefined
  /** What the start waits for. Default: `ready`. A process with a fault that it reports is alive, and not ready. */
  readonly until?: 'alive' | 'ready' | undefined
}

/**
 * The same options of Node as in the images. Bodies are Buffers. With Node's default young generation of 32 MB they
 * accumulate until V8 runs a major GC, every quarter of a second at full load. With 16 MB they are freed before that.
 *
 * V8 collects garbage with four threads of its own by default, and the event loop waits for all of them. Where there are fewer free
 * processors, they take turns with the loop: one thread halves the slowest answers under attack (see docs/overload.md).
 */
export const nodeOptions = { api: ['--max-semi-space-size=16', '--v8-pool-size=1'], worker: [] } as const
const READY_DEADLINE_MS = 30_000
/** Leaves half a second between the deadline of the process and SIGKILL. */
const SHUTDOWN_DEADLINE_MS = 3_000
if (SHUTDOWN_DEADLINE_MS >= Math.min(stopDeadlinesMs.api, stopDeadlinesMs.worker)) {
  throw new Error('SHUTDOWN_DEADLINE_MS must be less than the stop deadlines of the roles')
}

/**
 * Starts an API process, and waits until it is ready.
 *
 * @param options.port the exact port. Default: a free one
 * @param options.host the address on which it listens. Default: 127.0.0.1
 */
export async function startApi(
  supervisor: Supervisor,
  options: AppOptions & { port?: number | undefined; host?: string | undefined },
): Promise<ApiApp> {
  const { host = '127.0.0.1' } = options
  const start = async (port: number): Promise<ApiApp> => {
    const app = await startApp(supervisor, 'api', options, {
      HOST: host,
      PORT: String(port),
      // On a local machine there are no other users to protect, and a load test is intended.
      RATE_LIMIT_ENTRIES_PER_SECOND: '0',
      RATE_LIMIT_BYTES_PER_SECOND: '0',
    })
    return { ...app, url: `http://${reachable(host)}:${port}` }
  }
  return options.port === undefined ? supervisor.ports.startOn(undefined, start) : start(options.port)
}

/** The host in the URL of a server on this machine. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

/** Starts a worker process, and waits until it is ready. */
export async function startWorker(
  supervisor: Supervisor,
  options: AppOptions & { clickhouse: ClickHouseAccess },
): Promise<App> {
  return startApp(supervisor, 'worker', options, clickhouseEnvironment(options.clickhouse))
}

/** The settings with which a process or a command connects to ClickHouse. */
export function clickhouseEnvironment(access: ClickHouseAccess): Readonly<Record<string, string>> {
  const { url, username, password, database } = access
  return {
    CLICKHOUSE_URL: url,
    CLICKHOUSE_USERNAME: username,
    CLICKHOUSE_PASSWORD: password,
    CLICKHOUSE_DATABASE: database,
  }
}

async function startApp(
  supervisor: Supervisor,
  role: 'api' | 'worker',
  options: AppOptions,
  settings: Readonly<Record<string, string>>,
): Promise<App> {
  const entry = options.entry ?? createRequire(import.meta.url).resolve(`@sluice/${role}/main`)
  return supervisor.ports.startOn(options.opsPort, async (opsPort) => {
    const opsUrl = `http://127.0.0.1:${opsPort}`
    const process = await supervisor.start({
      role,
      name: options.name ?? role,
      command: globalThis.process.execPath,
      args: [...nodeOptions[role], entry],
      cwd: dirname(entry),
      environment: {
        LOG_LEVEL: 'info',
        SHUTDOWN_DEADLINE_MS: String(SHUTDOWN_DEADLINE_MS),
        REDIS_URL: options.redisUrl,
        SLUICE_PREFIX: options.prefix,
        ...settings,
        ...options.environment,
        OPS_HOST: '127.0.0.1',
        OPS_PORT: String(opsPort),
      },
      readyDeadlineMs: READY_DEADLINE_MS,
      isReady: async (signal) => {
        const response = await fetch(`${opsUrl}/${options.until === 'alive' ? 'livez' : 'readyz'}`, {
          signal,
        })
        await response.body?.cancel()
        return response.ok
      },
    })
    return { process, opsUrl }
  })
}
