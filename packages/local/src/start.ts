// `npm start`: runs Redis, ClickHouse, API and worker on this machine until Ctrl-C.
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readSettings } from '@sluice/runtime'
import { LocalRun } from './local-run.ts'
import { Reporter } from './reporter.ts'

const settings = {
  PORT: { type: 'integer', minimum: 0, maximum: 65_535, default: 3000, description: 'Port of the API.' },
  SLUICE_DATA_DIR: { type: 'string', description: 'Folder of the data, the logs and local.json.' },
} as const

/** How often to check whether npm, which started this process, is still running. */
const PARENT_CHECK_INTERVAL_MS = 500

const root = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))))
const reporter = new Reporter(
  (text) => process.stdout.write(text),
  process.stdout.isTTY && process.stdout.hasColors(),
)
// Closing the terminal closes the output. Without this handler the error would prevent the orderly stop.
process.stdout.on('error', () => undefined)

try {
  const { PORT, SLUICE_DATA_DIR } = readSettings(settings, process.env)
  const run = new LocalRun({
    port: PORT,
    dataDir: SLUICE_DATA_DIR === undefined ? join(root, '.data') : resolve(SLUICE_DATA_DIR),
    isDefaultDataDir: SLUICE_DATA_DIR === undefined,
    reporter,
    random: Math.random,
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => run.interrupt())
  if (process.env['npm_lifecycle_event'] !== undefined) watchParent(() => run.interrupt())
  process.exitCode = await run.run()
} catch (error) {
  reporter.fail(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
}
process.exit()

/** A process gets a new parent when its parent dies. */
function watchParent(onDeath: () => void): void {
  const parent = process.ppid
  const check = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(check)
    onDeath()
  }, PARENT_CHECK_INTERVAL_MS)
}
