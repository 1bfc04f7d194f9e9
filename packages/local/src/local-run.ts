import { fstatSync, readFileSync, renameSync, statfsSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { apiSettings, readApiConfig } from '@sluice/api/config'
import { hashApiKey, Sessions } from '@sluice/projects'
import { querySettings, readQueryConfig } from '@sluice/query/config'
import { installationNames, probePort, SettingsError } from '@sluice/runtime'
import { workerSettings } from '@sluice/worker/config'
import { type Installation, startInstallation } from './installation.ts'
import { withRedis } from './redis.ts'
import { describeExit, ProcessError } from './supervised-process.ts'
import { DataDirectoryBusyError, Supervisor } from './supervisor.ts'

const DEFAULT_DATA_DIR = fileURLToPath(new URL('../../../.data', import.meta.url))
const DEFAULT_PORT = 3_000
/** Free ones are used if another program has it. */
const DEFAULT_QUERY_PORT = 3_001
const UNPRIVILEGED_PORT_MIN = 1_024
const DISK_CHECK_INTERVAL_MS = 2_000
/** ClickHouse reserves space before it writes: an insert of a full batch takes some tens of megabytes. */
const FREE_BYTES_MIN = 64 * 1024 * 1024

/** Settings that have no effect here, because `npm start` runs Redis, ClickHouse and all processes itself. */
const DETERMINED =
  /^(CLICKHOUSE_.*|OPS_HOST|OPS_PORT|REDIS_SENTINEL_PASSWORD|REDIS_TLS_CA_FILE|REDIS_URL|SHUTDOWN_DEADLINE_MS|SLUICE_PREFIX)$/

type Write = (line: string) => void

/** Runs everything until it is interrupted, cannot start, or one process exits. Then it stops the others. @returns the exit code */
export async function runLocally(
  environment: NodeJS.ProcessEnv,
  interrupted: Promise<void>,
  write: Write,
): Promise<number> {
  const dataDir = resolve(environment['SLUICE_DATA_DIR'] || DEFAULT_DATA_DIR)
  let supervisor: Supervisor | undefined
  try {
    const full = describeFullDisk(dataDir)
    if (full !== undefined) throw new Error(full)
    supervisor = new Supervisor({ dataDir })
    await Promise.race([interrupted, startAndWatch(supervisor, environment, write)])
    await supervisor.stop()
    return 0
  } catch (error) {
    write(`✗ ${explain(error, dataDir)}`)
    await supervisor?.stop()
    return 1
  }
}

function rejectDetermined(environment: NodeJS.ProcessEnv): void {
  const known = Object.keys({ ...apiSettings, ...workerSettings, ...querySettings })
  const names = known.filter((name) => DETERMINED.test(name) && environment[name])
  if (names.length === 0) return
  throw new SettingsError(
    `npm start runs Redis, ClickHouse, API, worker and query process itself, and cannot use ${names.join(', ')}. ` +
      `Start it without: env ${names.map((name) => `-u ${name}`).join(' ')} npm start`,
  )
}

async function startAndWatch(
  supervisor: Supervisor,
  environment: NodeJS.ProcessEnv,
  write: Write,
): Promise<never> {
  rejectDetermined(environment)
  const { HOST: host, PORT: port } = readApiConfig(environment)
  const { QUERY_HOST, QUERY_PORT } = readQueryConfig(environment)
  const { dataDir } = supervisor
  const code = await probePort(port, host)
  if (code !== undefined) throw new Error(describePort(host, port, code))
  write('Starting Redis, ClickHouse, API, worker and explorer …')
  const { opsPorts, redis, clickhouse, project, queryPort = DEFAULT_QUERY_PORT } = readEarlier(dataDir)
  const installation = await startInstallation({
    supervisor,
    redis,
    clickhouse,
    earlier: project,
    note: write,
    api: { host, port: port === 0 ? undefined : port, opsPort: opsPorts?.api, environment },
    worker: { opsPort: opsPorts?.worker, environment },
    query: {
      host: QUERY_HOST,
      port: environment['QUERY_PORT'] ? QUERY_PORT : undefined,
      preferredPort: queryPort,
      opsPort: opsPorts?.query,
      environment,
    },
  })
  writeLocalFile(dataDir, installation)
  // Such as the file that the shell creates for `npm start > start.log`.
  const output = fstatSync(process.stdout.fd)
  const isPublic = output.isFile() && (output.mode & 0o077) !== 0
  write(welcome(installation, dataDir, isPublic, isPublic ? undefined : await explorerLink(installation)))
  watchDisk(dataDir, write)
  const exits = Object.values(installation.processes).map(async (each) => ({ each, exit: await each.exited }))
  const { each, exit } = await Promise.race(exits)
  throw new ProcessError(each, `exited (${describeExit(exit)})`)
}

/** The content of `local.json` in the data directory. Scripts and the CLI read addresses and credentials from it. */
export type LocalFile = Pick<
  Installation,
  'apiUrl' | 'apiKey' | 'queryUrl' | 'readKey' | 'projectId' | 'redisUrl' | 'clickhouse' | 'opsUrls'
>

/** Writes `local.json`, readable by its owner only. Readers see the old or the new content, never a partial one. */
export function writeLocalFile(dataDir: string, local: LocalFile): void {
  const { apiUrl, apiKey, queryUrl = '', readKey = '', projectId, redisUrl, clickhouse, opsUrls } = local
  const content: LocalFile = { apiUrl, apiKey, queryUrl, readKey, projectId, redisUrl, clickhouse, opsUrls }
  const path = join(dataDir, 'local.json')
  writeFileSync(`${path}.new`, `${JSON.stringify(content, undefined, 2)}\n`, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** What a start takes over from the earlier one, so that saved addresses stay valid. Nothing if the file is missing or invalid. */
export function readEarlier(dataDir: string) {
  try {
    const local = JSON.parse(readFileSync(join(dataDir, 'local.json'), 'utf8')) as LocalFile
    return {
      apiUrl: local.apiUrl,
      project: { projectId: local.projectId, apiKey: local.apiKey, readKey: local.readKey },
      queryPort: portOf(local.queryUrl),
      redis: { port: portOf(local.redisUrl), password: new URL(local.redisUrl).password },
      clickhouse: { port: portOf(local.clickhouse.url), password: local.clickhouse.password },
      opsPorts: {
        api: portOf(local.opsUrls.api),
        worker: portOf(local.opsUrls.worker),
        query: portOf(local.opsUrls.query),
      },
    }
  } catch {
    return {}
  }
}

/** A file of an earlier version has fewer addresses. */
const portOf = (url: string | undefined): number | undefined => (url ? Number(new URL(url).port) : undefined)

/** An address that signs in to the explorer once. Without one, the explorer asks for the key. */
function explorerLink({ queryUrl = '', readKey = '', redisUrl, prefix }: Installation): Promise<string> {
  return withRedis(redisUrl, async (redis) => {
    const sessions = new Sessions(redis, installationNames(prefix).registryPrefix)
    return `${queryUrl}/open?token=${await sessions.createLink(hashApiKey(readKey))}`
  })
}

/** Of the disk with a folder. A folder that does not exist yet will be on the disk of its parent. */
function freeBytesOf(folder: string): number {
  try {
    const { blocks, bavail, bsize } = statfsSync(folder)
    // Such as /proc, which has no disk.
    return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize
  } catch {
    return dirname(folder) === folder ? Number.POSITIVE_INFINITY : freeBytesOf(dirname(folder))
  }
}

/** Says which disk of the data directory is full: each store may have its own. Undefined if none is. */
export function describeFullDisk(dataDir: string, freeBytes = freeBytesOf): string | undefined {
  const folders = [dataDir, join(dataDir, 'clickhouse'), join(dataDir, 'redis')]
  const full = folders.find((folder) => freeBytes(folder) < FREE_BYTES_MIN)
  if (full === undefined) return undefined
  const free = `The disk of ${full} is full (${Math.floor(freeBytes(full) / 1e6)} MB free).`
  return `${free} Free some space, or set SLUICE_DATA_DIR to a folder on another disk.`
}

/** A full disk stops Redis at its next write. ClickHouse goes on without inserts, and the entries wait in Redis. */
function watchDisk(dataDir: string, write: Write): void {
  let wasFull = false
  setInterval(() => {
    const full = describeFullDisk(dataDir)
    if (full !== undefined && !wasFull) write(`✗ ${full}`)
    if (full === undefined && wasFull) write('The disk has space again.')
    wasFull = full !== undefined
  }, DISK_CHECK_INTERVAL_MS)
}

/** What fails because of a full disk has many messages: of Redis, ClickHouse, SQLite and Node. The disk itself has one. */
function explain(failure: unknown, dataDir: string): string {
  const cause = explainFailure(failure, dataDir)
  const full = describeFullDisk(dataDir)
  return full === undefined || cause === full ? cause : `${full}\n  ${cause}`
}

function explainFailure(failure: unknown, dataDir: string): string {
  if (failure instanceof DataDirectoryBusyError) {
    const { apiUrl } = readEarlier(dataDir)
    const where = apiUrl === undefined ? '' : ` (API: ${apiUrl})`
    return `Sluice is already running on ${dataDir}${where}. Stop it first, or set SLUICE_DATA_DIR to another folder.`
  }
  const { code, path, message } = failure as NodeJS.ErrnoException
  const isOfFolder = path !== undefined && (path.startsWith(dataDir) || dataDir.startsWith(path))
  // SQLite, which locks the folder, reports no path.
  if (!isOfFolder && code !== 'ERR_SQLITE_ERROR') return message
  return `The data folder ${dataDir} cannot be used (${message}). Set SLUICE_DATA_DIR to a folder that you may write to.`
}

export function describePort(host: string, port: number, code: string): string {
  const next = port < UNPRIVILEGED_PORT_MIN || port >= 65_535 ? DEFAULT_PORT : port + 1
  return `The API cannot listen on HOST=${host} and PORT=${port} (${code}). Choose others: HOST=127.0.0.1 PORT=${next} npm start`
}

/**
 * @param hidesKey whether others may read the output. The key is then only in `local.json`
 * @param link signs in to the explorer, once and within two minutes
 */
export function welcome(
  { apiUrl, apiKey, queryUrl, projectId, opsUrls }: LocalFile,
  dataDir: string,
  hidesKey: boolean,
  link = queryUrl,
): string {
  const quoted = `'${dataDir.replaceAll("'", String.raw`'\''`)}'`
  const sluice = dataDir === resolve(DEFAULT_DATA_DIR) ? './sluice' : `SLUICE_DATA_DIR=${quoted} ./sluice`
  const entry = '{"level":"info","message":"Hello, Sluice","service":"curl","metadata":{"user":42}}'
  const headers = `-H 'Authorization: Bearer ${apiKey}' -H 'Content-Type: application/json'`
  const curl = `curl -sS ${apiUrl}/v1/logs ${headers} -d '${entry}'`
  return `
Sluice is ready. Ctrl-C stops it. The data stays in ${dataDir}

  API      ${apiUrl}
  Key      ${hidesKey ? `in ${dataDir}/local.json` : apiKey}  (project ${projectId})
  Send     ${hidesKey ? `echo 'Hello, Sluice' | ${sluice} send` : curl}
  Read     ${sluice} logs --follow
  Explore  ${link}
  Docs     ${apiUrl}/docs
  Metrics  ${opsUrls.api}/metrics (API), ${opsUrls.worker}/metrics (worker), ${opsUrls.query}/metrics (query)
`
}
