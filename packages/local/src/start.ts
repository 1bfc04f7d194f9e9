// `npm start`: runs Redis, ClickHouse, API and worker on this machine until Ctrl-C.
import { fstatSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ignoreErrors } from '@sluice/runtime'
import { LocalRun } from './local-run.ts'
import { Reporter } from './reporter.ts'
import { readStartSettings } from './start-settings.ts'

/** How often to check whether npm, which started this process, is still running. */
const PARENT_CHECK_INTERVAL_MS = 500

const root = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))))
const reporter = new Reporter((text) => process.stdout.write(text), {
  colours: process.stdout.isTTY && process.stdout.hasColors(),
  hidesSecrets: isReadableByOthers(process.stdout.fd),
})
// Closing the terminal closes the output. Without this the error would prevent the orderly stop.
ignoreErrors(process.stdout)

let exitCode = 1
try {
  const { dataDir, ...settings } = readStartSettings(process.env)
  const run = new LocalRun({
    ...settings,
    dataDir: dataDir ?? join(root, '.data'),
    isDefaultDataDir: dataDir === undefined,
    reporter,
    random: Math.random,
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => run.interrupt())
  if (process.env['npm_lifecycle_event'] !== undefined) watchParent(() => run.interrupt())
  exitCode = await run.run()
} catch (error) {
  reporter.fail(error instanceof Error ? error.message : String(error))
}
process.exit(exitCode)

/** A process gets a new parent when its parent dies. */
function watchParent(onDeath: () => void): void {
  const parent = process.ppid
  const check = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(check)
    onDeath()
  }, PARENT_CHECK_INTERVAL_MS)
}

/** Whether an output is a file that other users may read, such as one that the shell created for `npm start > start.log`. */
function isReadableByOthers(output: number): boolean {
  const status = fstatSync(output)
  return status.isFile() && (status.mode & 0o077) !== 0
}
