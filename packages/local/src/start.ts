// `npm start -- [--api N] [--workers N]`: runs Redis, ClickHouse, API and worker on this machine until Ctrl-C.
import { parseArgs } from 'node:util'
import { ignoreErrors } from '@sluice/runtime'
import { runLocally } from './local-run.ts'

const PARENT_CHECK_INTERVAL_MS = 500
/** An interrupted run ends after this time, whatever is in progress. An orderly stop takes less. */
const STOP_DEADLINE_MS = 9_900

const interrupted = Promise.withResolvers<void>()
let isInterrupted = false
// Closing the terminal closes the output. Without this the error would prevent the orderly stop.
ignoreErrors(process.stdout)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt)
if (process.env['npm_lifecycle_event'] !== undefined) {
  const parent = process.ppid
  setInterval(() => {
    if (process.ppid !== parent) interrupt()
  }, PARENT_CHECK_INTERVAL_MS)
}
process.exit(await runLocally(readSettings(), interrupted.promise, write))

/** @returns the environment with the settings that the arguments choose */
function readSettings(): NodeJS.ProcessEnv {
  try {
    const { values } = parseArgs({ options: { api: { type: 'string' }, workers: { type: 'string' } } })
    const { API_PROCESSES, WORKER_PROCESSES } = process.env
    const { api = API_PROCESSES, workers = WORKER_PROCESSES } = values
    return { ...process.env, API_PROCESSES: api, WORKER_PROCESSES: workers }
  } catch (error) {
    write(`✗ ${(error as Error).message}\n  Usage: npm start -- [--api N] [--workers N]`)
    return process.exit(1)
  }
}

function write(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Begins an orderly stop. One Ctrl-C may cause two signals, because npm forwards the one of the terminal. */
function interrupt(): void {
  if (isInterrupted) return
  isInterrupted = true
  write('\nStopping …')
  interrupted.resolve()
  setTimeout(() => process.exit(1), STOP_DEADLINE_MS)
}
