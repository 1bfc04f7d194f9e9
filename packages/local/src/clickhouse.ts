import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ClickHouseAccess } from '@sluice/runtime'
import { serverConfig, usersConfig } from './clickhouse-config.ts'
import { onFreePort } from './ports.ts'
import type { SupervisedProcess } from './supervised-process.ts'
import type { Supervisor } from './supervisor.ts'

export interface ClickHouseServer {
  readonly process: SupervisedProcess
  readonly access: ClickHouseAccess
  readonly port: number
  /** For people, for example `ClickHouse 26.7`. */
  readonly version: string
}

export interface ClickHouseOptions {
  /** Taken if it is free; else, and without one, another. */
  readonly port?: number | undefined
  readonly username?: string | undefined
  /** Random without it. */
  readonly password?: string | undefined
  /** Which database the access names; it is not made here. */
  readonly database?: string | undefined
}

const entry = fileURLToPath(new URL('clickhouse-server.ts', import.meta.url))
/** Loading the parts of large tables takes some seconds. */
const READY_DEADLINE_MS = 60_000

/**
 * Starts a ClickHouse with its HTTP interface on 127.0.0.1 and one user. It keeps its data in `clickhouse` in the data
 * directory. No table of its own logs is kept: the embedded engine makes none.
 */
export async function startClickHouse(
  supervisor: Supervisor,
  options: ClickHouseOptions = {},
): Promise<ClickHouseServer> {
  const { username = 'sluice', database = 'sluice' } = options
  const { password = randomBytes(18).toString('base64url') } = options
  if (!/^[A-Za-z]\w*$/.test(username) || username === 'default') {
    throw new Error(`${username} cannot be the user's name`)
  }
  const folder = join(supervisor.dataDir, 'clickhouse')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const configFile = join(folder, 'config.xml')
  const usersFile = join(folder, 'users.xml')

  return onFreePort(options.port, async (port) => {
    const config = { folder: join(folder, 'data'), port, username, password }
    writeFileSync(configFile, serverConfig(config, usersFile), { mode: 0o600 })
    writeFileSync(usersFile, usersConfig(config), { mode: 0o600 })
    const access = { url: `http://127.0.0.1:${port}`, username, password, database }
    const process = await supervisor.start({
      role: 'clickhouse',
      name: 'clickhouse',
      command: globalThis.process.execPath,
      // Node warns that calling a library is experimental; the warning is for us, not for who reads the log.
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

/** The server's version, asked with the password, so that no other server's answer is taken for this one's. */
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
