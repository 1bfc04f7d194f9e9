import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { freePort, type SupervisedProcess, type Supervisor } from '@sluice/local'
import { migrate, readMigrations, type ClickHouseAccess } from '@sluice/runtime'

const READY_DEADLINE_MS = 30_000
/** Less than what the supervisor gives a process before it kills it. */
const SHUTDOWN_DEADLINE_MS = 3_000
const folder = new URL('../baselines/', import.meta.url)

export const baselineProject = 'bench'

export function makeKey(): string {
  return randomBytes(24).toString('base64url')
}

/** Makes a baseline's own database beside the service's, and its table in it. */
export async function makeTable(access: ClickHouseAccess, database: string): Promise<ClickHouseAccess> {
  const own = { ...access, database }
  await migrate(own, await readMigrations(new URL('migrations/', folder)))
  return own
}

/** Starts a process of a baseline, with a port of its own on which `/readyz` answers. */
export async function startBaselineProcess(
  supervisor: Supervisor,
  options: {
    role: 'api' | 'worker' | 'clickhouse'
    name: string
    /** A file of the baselines' folder. */
    file: string
    portVariable: 'PORT' | 'OPS_PORT'
    environment: Readonly<Record<string, string>>
  },
): Promise<{ process: SupervisedProcess; url: string }> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const process = await supervisor.start({
    role: options.role,
    name: options.name,
    command: globalThis.process.execPath,
    args: [fileURLToPath(new URL(options.file, folder))],
    cwd: fileURLToPath(folder),
    environment: {
      NODE_ENV: 'production',
      SHUTDOWN_DEADLINE_MS: String(SHUTDOWN_DEADLINE_MS),
      ...options.environment,
      [options.portVariable]: String(port),
    },
    readyDeadlineMs: READY_DEADLINE_MS,
    isReady: async (signal) => {
      const response = await fetch(`${url}/readyz`, { signal })
      await response.body?.cancel()
      return response.ok
    },
  })
  return { process, url }
}

export function clickhouseEnvironment(access: ClickHouseAccess): Record<string, string> {
  return {
    CLICKHOUSE_URL: access.url,
    CLICKHOUSE_USERNAME: access.username,
    CLICKHOUSE_PASSWORD: access.password,
    CLICKHOUSE_DATABASE: access.database,
  }
}
