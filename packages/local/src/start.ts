// `npm start`: runs Redis, ClickHouse, API and worker on this machine until Ctrl-C.
import { fstatSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { apiSettings, readApiConfig } from '@sluice/api/config'
import { ignoreErrors, SettingsError } from '@sluice/runtime'
import { workerSettings } from '@sluice/worker/config'
import { runLocally } from './local-run.ts'

/** How often to check whether npm, which started this process, is still running. */
const PARENT_CHECK_INTERVAL_MS = 500
/** An interrupted run ends after this time, whatever is in progress. An orderly stop takes less. */
const STOP_DEADLINE_MS = 9_900

/** Settings of API and worker that have no effect here, because `npm start` runs Redis, ClickHouse and both processes itself. */
const DETERMINED =
  /^(CLICKHOUSE_.*|OPS_HOST|OPS_PORT|REDIS_SENTINEL_PASSWORD|REDIS_TLS_CA_FILE|REDIS_URL|SHUTDOWN_DEADLINE_MS|SLUICE_PREFIX)$/

const interrupted = Promise.withResolvers<void>()
let isInterrupted = false
// Closing the terminal closes the output. Without this the error would prevent the orderly stop.
ignoreErrors(process.stdout)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt)
if (process.env['npm_lifecycle_event'] !== undefined) watchParent()
let exitCode = 1
try {
  rejectDetermined()
  const { HOST, PORT } = readApiConfig(process.env)
  const { SLUICE_DATA_DIR: dataDir } = process.env
  exitCode = await runLocally(
    {
      dataDir: dataDir ? resolve(dataDir) : fileURLToPath(new URL('../../../.data', import.meta.url)),
      isDefaultDataDir: !dataDir,
      host: HOST,
      port: PORT,
      environment: process.env,
      hidesKey: isReadableByOthers(process.stdout.fd),
      write,
    },
    interrupted.promise,
  )
} catch (error) {
  write(`✗ ${error instanceof Error ? error.message : String(error)}\n`)
}
process.exit(exitCode)

function rejectDetermined(): void {
  const known = Object.keys({ ...apiSettings, ...workerSettings })
  const names = known.filter((name) => DETERMINED.test(name) && process.env[name])
  if (names.length === 0) return
  throw new SettingsError(
    `npm start runs Redis, ClickHouse, API and worker itself, and cannot use ${names.join(', ')}. ` +
      `Start it without: env ${names.map((name) => `-u ${name}`).join(' ')} npm start. ` +
      'With other servers, run API and worker as docs/containers.md describes.',
  )
}

function write(text: string): void {
  process.stdout.write(text)
}

/** Begins an orderly stop. One Ctrl-C may cause two signals, because npm forwards the one of the terminal. */
function interrupt(): void {
  if (isInterrupted) return
  isInterrupted = true
  write('\nStopping …\n')
  interrupted.resolve()
  // Kills what is left.
  setTimeout(() => process.exit(1), STOP_DEADLINE_MS)
}

/** A process gets a new parent when its parent dies. */
function watchParent(): void {
  const parent = process.ppid
  const check = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(check)
    interrupt()
  }, PARENT_CHECK_INTERVAL_MS)
}

/** Whether an output is a file that other users may read, such as one that the shell created for `npm start > start.log`. */
function isReadableByOthers(output: number): boolean {
  const status = fstatSync(output)
  return status.isFile() && (status.mode & 0o077) !== 0
}
