import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { type ClickHouseAccess, migrate, readMigrations } from '@sluice/clickhouse'
import type { SupervisedProcess, Supervisor } from '@sluice/local'

const READY_DEADLINE_MS = 30_000
/** Shorter than the time after which the supervisor kills a process. */
const SHUTDOWN_DEADLINE_MS = 3_000
const folder = new URL('../baselines/', import.meta.url)

export const baselineProject = 'bench'

export function createApiKey(): string {
  return randomBytes(24).toString('base64url')
}

/** Creates a separate database for a baseline, with its table. */
export async function createDatabase(access: ClickHouseAccess, database: string): Promise<ClickHouseAccess> {
  const baselineAccess = { ...access, database }
  await migrate(baselineAccess, await readMigrations(new URL('migrations/', folder)))
  return baselineAccess
}

/** Starts a process of a baseline on a free port. It is ready when `/readyz` answers on that port. */
export async function startBaselineProcess(
  supervisor: Supervisor,
  options: {
    role: 'api' | 'worker' | 'clickhouse'
    name: string
    /** File name in the baselines folder. */
    file: string
    portVariable: 'PORT' | 'OPS_PORT'
    environment: Readonly<Record<string, string>>
  },
): Promise<{ process: SupervisedProcess; url: string }> {
  const port = await supervisor.ports.free()
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
