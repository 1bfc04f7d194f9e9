import { startInstallation } from './installation.ts'
import { type LocalFile, readEarlier, writeLocalFile } from './local-file.ts'
import { probePort } from './ports.ts'
import { describeExit, ProcessError } from './supervised-process.ts'
import { DataDirectoryBusyError, Supervisor } from './supervisor.ts'

export interface LocalRunOptions {
  /** An absolute path. */
  readonly dataDir: string
  readonly isDefaultDataDir: boolean
  /** The address and the port of the API. Port 0 chooses a free one. */
  readonly host: string
  readonly port: number
  /** The settings of API and worker. */
  readonly environment: NodeJS.ProcessEnv
  /** Whether others may read the output. The key is then only in `local.json`. */
  readonly hidesKey: boolean
  readonly write: (text: string) => void
}

const DEFAULT_PORT = 3_000
/** On Linux, only root may use the ports below it. */
const UNPRIVILEGED_PORT_MIN = 1_024
const PORT_MAX = 65_535

/**
 * Runs everything until it is interrupted, cannot start, or one process exits. Then it stops the others.
 *
 * @returns the exit code
 */
export async function runLocally(options: LocalRunOptions, interrupted: Promise<void>): Promise<number> {
  const { dataDir, write } = options
  let supervisor: Supervisor | undefined
  try {
    if (process.platform === 'win32') {
      throw new Error('The embedded ClickHouse does not run on Windows. Use WSL, its Linux subsystem.')
    }
    supervisor = await Supervisor.open({ dataDir })
    await Promise.race([interrupted, startAndWatch(supervisor, options)])
    await supervisor.stop()
    return 0
  } catch (error) {
    write(`✗ ${explain(error, dataDir)}\n`)
    await supervisor?.stop()
    return 1
  }
}

/** @throws the reason why the run cannot continue; it never returns */
async function startAndWatch(supervisor: Supervisor, options: LocalRunOptions): Promise<never> {
  const { dataDir, host, port, environment, write } = options
  const probe = await probePort(port, host)
  if ('code' in probe) throw new Error(describePort(host, port, probe.code))
  write('Starting Redis, ClickHouse, API and worker …\n')
  const { opsPorts, redis, clickhouse, apiKey } = readEarlier(dataDir)
  const installation = await startInstallation({
    supervisor,
    redis,
    clickhouse,
    apiKey,
    note: (text) => write(`${text}\n`),
    api: { host, port: port === 0 ? undefined : port, opsPort: opsPorts?.api, environment },
    worker: { opsPort: opsPorts?.worker, environment },
  })
  writeLocalFile(dataDir, installation)
  write(welcome(installation, options))
  const exits = Object.values(installation.processes).map(async (each) => ({ each, exit: await each.exited }))
  const { each, exit } = await Promise.race(exits)
  throw new ProcessError(`${each.name} exited (${describeExit(exit)})`, each.logFile)
}

function explain(failure: unknown, dataDir: string): string {
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

/** Whether an error is about the data folder or a file in it: it has no permission, is a file, is on a full disk. */
function concernsDataFolder(error: unknown, dataDir: string): boolean {
  if (!(error instanceof Error) || !('code' in error)) return false
  // SQLite, which locks the folder, reports no path.
  if (error.code === 'ERR_SQLITE_ERROR') return true
  if (!('path' in error) || typeof error.path !== 'string') return false
  return error.path.startsWith(dataDir) || dataDir.startsWith(error.path)
}

/** Why the API cannot listen, and what to do. */
export function describePort(host: string, port: number, code: string): string {
  const problem = `The API cannot listen on HOST=${host} and PORT=${port} (${code})`
  if (code !== 'EADDRINUSE' && (code !== 'EACCES' || port >= UNPRIVILEGED_PORT_MIN)) {
    return `${problem}. Choose an address of this machine: HOST=127.0.0.1 npm start`
  }
  const next = port < UNPRIVILEGED_PORT_MIN || port >= PORT_MAX ? DEFAULT_PORT : port + 1
  return `${problem}. Choose another port: PORT=${next} npm start`
}

const exampleEntry = { level: 'info', message: 'Hello, Sluice', service: 'curl', metadata: { user: 42 } }

/** What a run prints when everything is ready. The commands work in the root folder of the repository. */
export function welcome(
  { apiUrl, apiKey, projectId, opsUrls }: LocalFile,
  { dataDir, isDefaultDataDir, hidesKey }: Pick<LocalRunOptions, 'dataDir' | 'isDefaultDataDir' | 'hidesKey'>,
): string {
  const quoted = `'${dataDir.replaceAll("'", String.raw`'\''`)}'`
  const sluice = isDefaultDataDir ? './sluice' : `SLUICE_DATA_DIR=${quoted} ./sluice`
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
