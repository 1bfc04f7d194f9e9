import { fstatSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { apiSettings, readApiConfig } from '@sluice/api/config'
import { SettingsError } from '@sluice/runtime'
import { workerSettings } from '@sluice/worker/config'
import { describeFullDisk } from './disk.ts'
import { startInstallation } from './installation.ts'
import { type LocalFile, readEarlier, writeLocalFile } from './local-file.ts'
import { probePort } from './ports.ts'
import { missingProgram } from './redis-program.mjs'
import { describeExit, ProcessError } from './supervised-process.ts'
import { DataDirectoryBusyError, Supervisor } from './supervisor.ts'

const DEFAULT_DATA_DIR = fileURLToPath(new URL('../../../.data', import.meta.url))
const DEFAULT_PORT = 3_000
const UNPRIVILEGED_PORT_MIN = 1_024
const DISK_CHECK_INTERVAL_MS = 2_000

/** Settings of API and worker that have no effect here, because `npm start` runs Redis, ClickHouse and both processes itself. */
const DETERMINED =
  /^(CLICKHOUSE_.*|OPS_HOST|OPS_PORT|REDIS_SENTINEL_PASSWORD|REDIS_TLS_CA_FILE|REDIS_URL|SHUTDOWN_DEADLINE_MS|SLUICE_PREFIX)$/

/** Runs everything until it is interrupted, cannot start, or one process exits. Then it stops the others. @returns the exit code */
export async function runLocally(
  environment: NodeJS.ProcessEnv,
  interrupted: Promise<void>,
  write: (line: string) => void,
): Promise<number> {
  const dataDir = resolve(environment['SLUICE_DATA_DIR'] || DEFAULT_DATA_DIR)
  let supervisor: Supervisor | undefined
  try {
    const missing = missingProgram(process.platform, environment['PATH'])
    if (missing !== undefined) throw new Error(missing)
    const full = describeFullDisk(dataDir)
    if (full !== undefined) throw new Error(full)
    rejectDetermined(environment)
    const { HOST, PORT } = readApiConfig(environment)
    supervisor = await Supervisor.open({ dataDir })
    await Promise.race([interrupted, startAndWatch(supervisor, HOST, PORT, environment, write)])
    await supervisor.stop()
    return 0
  } catch (error) {
    write(`✗ ${explain(error, dataDir)}`)
    await supervisor?.stop()
    return 1
  }
}

function rejectDetermined(environment: NodeJS.ProcessEnv): void {
  const known = Object.keys({ ...apiSettings, ...workerSettings })
  const names = known.filter((name) => DETERMINED.test(name) && environment[name])
  if (names.length === 0) return
  throw new SettingsError(
    `npm start runs Redis, ClickHouse, API and worker itself, and cannot use ${names.join(', ')}. ` +
      `Start it without: env ${names.map((name) => `-u ${name}`).join(' ')} npm start. ` +
      'With other servers, run API and worker as docs/containers.md describes.',
  )
}

async function startAndWatch(
  supervisor: Supervisor,
  host: string,
  port: number,
  environment: NodeJS.ProcessEnv,
  write: (line: string) => void,
): Promise<never> {
  const { dataDir } = supervisor
  const probe = await probePort(port, host)
  if ('code' in probe) throw new Error(describePort(host, port, probe.code))
  write('Starting Redis, ClickHouse, API and worker …')
  const { opsPorts, redis, clickhouse, project } = readEarlier(dataDir)
  const installation = await startInstallation({
    supervisor,
    redis,
    clickhouse,
    earlier: project,
    note: write,
    api: { host, port: port === 0 ? undefined : port, opsPort: opsPorts?.api, environment },
    worker: { opsPort: opsPorts?.worker, environment },
  })
  writeLocalFile(dataDir, installation)
  // Such as the file that the shell creates for `npm start > start.log`.
  const output = fstatSync(process.stdout.fd)
  write(welcome(installation, dataDir, output.isFile() && (output.mode & 0o077) !== 0))
  const exits = Object.values(installation.processes).map(async (each) => ({ each, exit: await each.exited }))
  const checks = watchDisk(dataDir, write)
  const { each, exit } = await Promise.race(exits)
  clearInterval(checks)
  throw new ProcessError(`${each.name} exited (${describeExit(exit)})`, each.logFile)
}

/** A full disk stops Redis at its next write. ClickHouse goes on without inserts, and the entries wait in Redis. */
function watchDisk(dataDir: string, write: (line: string) => void): NodeJS.Timeout {
  let last: string | undefined
  const check = (): void => {
    const full = describeFullDisk(dataDir)
    if (full !== undefined && last === undefined) write(`✗ ${full}`)
    if (full === undefined && last !== undefined) write('The disk has space again.')
    last = full
  }
  return setInterval(check, DISK_CHECK_INTERVAL_MS)
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
  if (failure instanceof ProcessError) {
    const log = failure.log.map((line) => `\n    | ${line}`).join('')
    return `${failure.message}\n    Log file: ${failure.logFile}${log}`
  }
  const message = failure instanceof Error ? failure.message : String(failure)
  if (!concernsDataFolder(failure, dataDir)) return message
  return `The data folder ${dataDir} cannot be used (${message}). Set SLUICE_DATA_DIR to a folder that you may write to.`
}

function concernsDataFolder(error: unknown, dataDir: string): boolean {
  const { code, path } = error as NodeJS.ErrnoException
  // SQLite, which locks the folder, reports no path.
  if (code === 'ERR_SQLITE_ERROR') return true
  return path !== undefined && (path.startsWith(dataDir) || dataDir.startsWith(path))
}

export function describePort(host: string, port: number, code: string): string {
  const problem = `The API cannot listen on HOST=${host} and PORT=${port} (${code})`
  if (code !== 'EADDRINUSE' && (code !== 'EACCES' || port >= UNPRIVILEGED_PORT_MIN))
    return `${problem}. Choose an address of this machine: HOST=127.0.0.1 npm start`
  const next = port < UNPRIVILEGED_PORT_MIN || port >= 65_535 ? DEFAULT_PORT : port + 1
  return `${problem}. Choose another port: PORT=${next} npm start`
}

const exampleEntry = { level: 'info', message: 'Hello, Sluice', service: 'curl', metadata: { user: 42 } }

/** @param hidesKey whether others may read the output. The key is then only in `local.json` */
export function welcome(
  { apiUrl, apiKey, projectId, opsUrls }: LocalFile,
  dataDir: string,
  hidesKey: boolean,
): string {
  const quoted = `'${dataDir.replaceAll("'", String.raw`'\''`)}'`
  const sluice = dataDir === resolve(DEFAULT_DATA_DIR) ? './sluice' : `SLUICE_DATA_DIR=${quoted} ./sluice`
  const curl =
    `curl -sS ${apiUrl}/v1/logs -H 'Authorization: Bearer ${apiKey}' ` +
    `-H 'Content-Type: application/json' -d '${JSON.stringify(exampleEntry)}'`
  return `
Sluice is ready. Ctrl-C stops it. The data stays in ${dataDir}

  API      ${apiUrl}
  Key      ${hidesKey ? `in ${dataDir}/local.json` : apiKey}  (project ${projectId})
  Send     ${hidesKey ? `echo 'Hello, Sluice' | ${sluice} send` : curl}
  Read     ${sluice} logs --project ${projectId} --follow
  Docs     ${apiUrl}/docs
  Metrics  ${opsUrls.api}/metrics (API), ${opsUrls.worker}/metrics (worker)
`
}
