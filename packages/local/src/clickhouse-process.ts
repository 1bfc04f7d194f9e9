import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ClickHouseAccess } from '@sluice/clickhouse'
import { serverConfig, usersConfig } from './clickhouse-config.ts'
import { makeFolder } from './data-folder.ts'
import type { SupervisedProcess } from './supervised-process.ts'
import type { Supervisor } from './supervisor.ts'

/** A running ClickHouse server. */
export interface ClickHouseProcess {
  readonly process: SupervisedProcess
  readonly access: ClickHouseAccess
  readonly port: number
  /** Human-readable, for example `ClickHouse 26.7`. */
  readonly version: string
}

export interface ClickHouseOptions {
  /** Used if it is free. Otherwise a free port is chosen. */
  readonly port?: number | undefined
  readonly username?: string | undefined
  /** Random by default. */
  readonly password?: string | undefined
  /** The database in the access. It is not created here. */
  readonly database?: string | undefined
}

const entry = fileURLToPath(new URL('clickhouse-server.ts', import.meta.url))
/** ClickHouse needs some seconds to load the parts of large tables. */
const READY_DEADLINE_MS = 60_000

/**
 * Starts a ClickHouse with its HTTP interface on 127.0.0.1 and one user. It stores its data in `clickhouse` in the data
 * directory. There are no system log tables: the embedded engine creates none.
 */
export async function startClickHouse(
  supervisor: Supervisor,
  options: ClickHouseOptions = {},
): Promise<ClickHouseProcess> {
  const { username = 'sluice', database = 'sluice' } = options
  const { password = randomBytes(18).toString('base64url') } = options
  if (!/^[A-Za-z]\w*$/.test(username) || username === 'default') {
    throw new Error(`${username} is not a valid user name: use letters, digits and _, and not "default"`)
  }
  const folder = join(supervisor.dataDir, 'clickhouse')
  makeFolder(folder)
  const configFile = join(folder, 'config.xml')
  const usersFile = join(folder, 'users.xml')

  return supervisor.ports.startOn(options.port, async (port) => {
    const config = { folder: join(folder, 'data'), port, username, password }
    writeFileSync(configFile, serverConfig(config, usersFile), { mode: 0o600 })
    writeFileSync(usersFile, usersConfig(config), { mode: 0o600 })
    const access = { url: `http://127.0.0.1:${port}`, username, password, database }
    const process = await supervisor.start({
      role: 'clickhouse',
      name: 'clickhouse',
      command: globalThis.process.execPath,
      // Node warns that `node:ffi` is experimental. The warning does not help the readers of the log.
      args: ['--disable-warning=ExperimentalWarning', entry, configFile],
      cwd: folder,
      environment: { TZ: 'UTC' },
      readyDeadlineMs: READY_DEADLINE_MS,
      isReady: async (signal) => (await askClickHouseVersion(access, signal)) !== undefined,
    })
    const version = await askClickHouseVersion(access, AbortSignal.timeout(5_000))
    return { process, access, port, version: version ?? 'ClickHouse' }
  })
}

/** Queries the server's version. The password in the request ensures that no other server answers. */
export async function askClickHouseVersion(
  access: ClickHouseAccess,
  signal: AbortSignal,
): Promise<string | undefined> {
  const response = await fetch(`${access.url}/?query=SELECT+version()`, {
    headers: { 'X-ClickHouse-User': access.username, 'X-ClickHouse-Key': access.password },
    signal,
  })
  const text = await response.text()
  return response.ok ? `ClickHouse ${text.split('.').slice(0, 2).join('.')}` : undefined
}
