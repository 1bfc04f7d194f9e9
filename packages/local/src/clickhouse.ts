import { hash, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ClickHouseAccess } from '@sluice/clickhouse'
import type { SupervisedProcess } from './supervised-process.ts'
import { makeFolder, type Supervisor } from './supervisor.ts'

export interface ClickHouseOptions {
  readonly port?: number | undefined
  readonly password?: string | undefined
}

const entry = fileURLToPath(new URL('clickhouse-server.ts', import.meta.url))
const USERNAME = 'sluice'
/** Of the query process: it can only read entries, and what dead letters have besides their rows. */
const READER = 'sluice_reader'
const DATABASE = 'sluice'

/** Starts a ClickHouse with its HTTP interface on 127.0.0.1 and one user. The database in the access is not created. */
export async function startClickHouse(
  supervisor: Supervisor,
  { port: preferredPort, password = randomPassword() }: ClickHouseOptions = {},
): Promise<{ process: SupervisedProcess; access: ClickHouseAccess; readAccess: ClickHouseAccess }> {
  const folder = join(supervisor.dataDir, 'clickhouse')
  const readPassword = randomPassword()
  makeFolder(folder)
  const [configFile, usersFile] = [join(folder, 'config.xml'), join(folder, 'users.xml')]
  return supervisor.ports.startOn(preferredPort, async (port) => {
    writeFileSync(configFile, serverConfig(join(folder, 'data'), port, usersFile), { mode: 0o600 })
    writeFileSync(usersFile, usersConfig(password, readPassword), { mode: 0o600 })
    const access = { url: `http://127.0.0.1:${port}`, username: USERNAME, password, database: DATABASE }
    const process = await supervisor.start({
      role: 'clickhouse',
      name: 'clickhouse',
      command: globalThis.process.execPath,
      // Node warns that `node:ffi` is experimental. The warning does not help the readers of the log.
      args: ['--disable-warning=ExperimentalWarning', entry, configFile],
      cwd: folder,
      environment: { TZ: 'UTC' },
      isReady: (signal) => clickhouseAnswers(access, signal),
    })
    return { process, access, readAccess: { ...access, username: READER, password: readPassword } }
  })
}

/** The password ensures that it is the right server. */
export async function clickhouseAnswers(access: ClickHouseAccess, signal: AbortSignal): Promise<boolean> {
  const response = await fetch(`${access.url}/?query=SELECT+1`, {
    headers: { 'X-ClickHouse-User': access.username, 'X-ClickHouse-Key': access.password },
    signal,
  })
  await response.body?.cancel()
  return response.ok
}

/** It suits a laptop: at most half of the memory, and small caches of marks, whose defaults (5 GB) are meant for a dedicated machine. */
function serverConfig(folder: string, port: number, usersFile: string): string {
  return `<clickhouse>
  <path>${escape(folder)}</path>
  <users_config>${escape(usersFile)}</users_config>
  <http_port>${port}</http_port>
  <listen_host>127.0.0.1</listen_host>
  <max_server_memory_usage_to_ram_ratio>0.5</max_server_memory_usage_to_ram_ratio>
  <mark_cache_size>268435456</mark_cache_size>
  <index_mark_cache_size>67108864</index_mark_cache_size>
  <primary_index_cache_size>268435456</primary_index_cache_size>
</clickhouse>
`
}

/**
 * chDB runs its first query as the user `default` without a password, so this user must exist. It has only the grants that the query needs,
 * and one session, which the query takes until the server stops.
 */
function usersConfig(password: string, readPassword: string): string {
  return `<clickhouse>
  <profiles>
    <default/>
    <starting><max_sessions_for_user>1</max_sessions_for_user></starting>
    <reading><readonly>2</readonly></reading>
  </profiles>
  <quotas><default/></quotas>
  <users>
    <default>
      <password></password>
      <networks><ip>127.0.0.1</ip></networks>
      <profile>starting</profile>
      <quota>default</quota>
      <grants>
        <query>GRANT SYSTEM LISTEN ON *.*</query>
        <query>GRANT SELECT ON system.numbers</query>
      </grants>
    </default>
    <${USERNAME}>
      <password_sha256_hex>${hash('sha256', password, 'hex')}</password_sha256_hex>
      <networks><ip>127.0.0.1</ip></networks>
      <profile>default</profile>
      <quota>default</quota>
      <access_management>1</access_management>
    </${USERNAME}>
    <${READER}>
      <password_sha256_hex>${hash('sha256', readPassword, 'hex')}</password_sha256_hex>
      <networks><ip>127.0.0.1</ip></networks>
      <profile>reading</profile>
      <quota>default</quota>
      <grants>
        <query>GRANT SELECT ON ${DATABASE}.logs</query>
        <query>GRANT SELECT(id, project_id, failed_at, code, reason) ON ${DATABASE}.dead_letters</query>
      </grants>
    </${READER}>
  </users>
</clickhouse>
`
}

const randomPassword = (): string => randomBytes(18).toString('base64url')

const escape = (text: string): string =>
  text.replaceAll(/[<>&]/g, (character) => `&#${character.charCodeAt(0)};`)
