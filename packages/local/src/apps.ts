import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import type { ClickHouseAccess } from '@sluice/runtime'
import { onFreePort } from './ports.ts'
import { stopDeadlinesMs } from './roles.ts'
import type { SupervisedProcess } from './supervised-process.ts'
import type { Supervisor } from './supervisor.ts'

export interface App {
  readonly process: SupervisedProcess
  /** Where `/livez` and `/readyz` are. */
  readonly opsUrl: string
}

export interface ApiApp extends App {
  readonly url: string
}

export interface AppOptions {
  readonly redisUrl: string
  /** Sets installations apart that share a Redis. */
  readonly prefix: string
  /** Names the process and its log; only a second one of its kind needs it. */
  readonly name?: string | undefined
  readonly opsPort?: number | undefined
  /** More of the environment: other settings than those that are set here, or these in place of them. */
  readonly environment?: Readonly<Record<string, string>> | undefined
  /** The file to run instead of the app's own. */
  readonly entry?: string | undefined
}

/**
 * Options of Node, as the images have them. Bodies are Buffers: with the young generation of 32 MB that is Node's default
 * they pile up until V8 marks the whole heap, every quarter of a second at full load; with 16 MB they are let go of before.
 */
const nodeOptions = { api: ['--max-semi-space-size=16'], worker: [] } as const
const READY_DEADLINE_MS = 30_000
/** Leaves a process half a second to end by itself before it is killed. */
const SHUTDOWN_DEADLINE_MS = 3_000
if (SHUTDOWN_DEADLINE_MS >= Math.min(stopDeadlinesMs.api, stopDeadlinesMs.worker)) {
  throw new Error('an app would be killed before its own deadline')
}

/**
 * Starts an API process, and waits until it is ready.
 *
 * @param options.port exactly this one; a free one without it
 */
export async function startApi(
  supervisor: Supervisor,
  options: AppOptions & { port?: number | undefined },
): Promise<ApiApp> {
  const start = async (port: number): Promise<ApiApp> => {
    const app = await startApp(supervisor, 'api', options, {
      HOST: '127.0.0.1',
      PORT: String(port),
      // One person's machine: nobody else is to be kept from drowning, and a load test is no accident.
      RATE_LIMIT_ENTRIES_PER_SECOND: '0',
      RATE_LIMIT_BYTES_PER_SECOND: '0',
    })
    return { ...app, url: `http://127.0.0.1:${port}` }
  }
  return options.port === undefined ? onFreePort(undefined, start) : start(options.port)
}

/** Starts a worker process, and waits until it is ready. */
export async function startWorker(
  supervisor: Supervisor,
  options: AppOptions & { clickhouse: ClickHouseAccess },
): Promise<App> {
  const { url, username, password, database } = options.clickhouse
  return startApp(supervisor, 'worker', options, {
    CLICKHOUSE_URL: url,
    CLICKHOUSE_USERNAME: username,
    CLICKHOUSE_PASSWORD: password,
    CLICKHOUSE_DATABASE: database,
  })
}

async function startApp(
  supervisor: Supervisor,
  role: 'api' | 'worker',
  options: AppOptions,
  settings: Readonly<Record<string, string>>,
): Promise<App> {
  const entry = options.entry ?? createRequire(import.meta.url).resolve(`@sluice/${role}/main`)
  return onFreePort(options.opsPort, async (opsPort) => {
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
        const response = await fetch(`${opsUrl}/readyz`, { signal })
        await response.body?.cancel()
        return response.ok
      },
    })
    return { process, opsUrl }
  })
}
