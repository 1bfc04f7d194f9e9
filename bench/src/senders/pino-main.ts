// `npm run lab -- pino`: what logging with pino costs an application, with the transport for Sluice and without it.
import { CommandLine } from '@sluice/harness/command-line'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readPositive } from '../options.ts'
import { alignColumns } from '../report.ts'
import type { PinoDestination, PinoFigures, PinoLoad } from './pino-application-main.ts'

const commandLine = new CommandLine(`npm run lab -- pino -- [options]

  --seconds N       length of each measurement window; default 5
  --down-seconds N  how long the API is down; default 60
  --json            prints JSON instead of a table (npm run --silent lab -- pino -- --json > FILE)
  --help            prints this text
`)
const values = commandLine.read({
  seconds: { type: 'string', default: '5' },
  'down-seconds': { type: 'string', default: '60' },
  json: { type: 'boolean', default: false },
})
const windowMs = readPositive(commandLine, '--seconds', values.seconds) * 1_000
const downMs = readPositive(commandLine, '--down-seconds', values['down-seconds']) * 1_000

/** Nothing listens there. */
const DOWN = 'http://127.0.0.1:4'
const rates = [1_000, 10_000, Infinity]

const folder = mkdtempSync(join(tmpdir(), 'bench-pino-'))
const api = start('accepting-api-main.ts')
const rows: Row[] = []
try {
  const [apiUrl] = (await once(api, 'message')) as [string]
  const addresses: Readonly<Record<PinoDestination, string>> = {
    null: '',
    file: join(folder, 'lines'),
    sluice: apiUrl,
    'sluice wait': apiUrl,
  }
  for (const linesPerS of rates) {
    for (const destination of Object.keys(addresses) as PinoDestination[])
      await measure('up', { destination, address: addresses[destination], linesPerS, windowMs })
  }
  for (const destination of ['sluice', 'sluice wait'] as const)
    await measure('down', { destination, address: DOWN, linesPerS: Infinity, windowMs: downMs })
} finally {
  api.disconnect()
  rmSync(folder, { recursive: true })
}
console.log(values.json ? JSON.stringify(rows, undefined, 2) : formatRows())

interface Row extends PinoFigures {
  readonly api: 'up' | 'down'
  readonly destination: PinoDestination
  /** Null: as fast as possible. */
  readonly rate: number | null
}

async function measure(state: Row['api'], load: PinoLoad): Promise<void> {
  const { destination, linesPerS } = load
  console.error(`${destination}, ${linesPerS} lines/s, the API is ${state}`)
  const application = start('pino-application-main.ts', JSON.stringify(load))
  let figures: PinoFigures | undefined
  application.once('message', (message: PinoFigures) => {
    figures = message
  })
  const [code] = (await once(application, 'close')) as [number | null]
  // pino may end an application because of its transport.
  if (figures === undefined || code !== 0) throw new Error(`the application ended with ${code}`)
  rows.push({ api: state, destination, rate: Number.isFinite(linesPerS) ? linesPerS : null, ...figures })
}

function start(program: string, ...parameters: readonly string[]): ChildProcess {
  return fork(fileURLToPath(new URL(program, import.meta.url)), parameters)
}

function formatRows(): string {
  const header = ['API', 'destination', 'rate', 'lines/s', 'µs/call', 'CPU µs/line', 'RSS MB', 'waiting MB']
  const cells = rows.map((row) => formatRow(row))
  return alignColumns([header, ...cells]).join('\n')
}

function formatRow(row: Row): string[] {
  const { api: state, destination, rate, linesPerS, usPerCall, cpuUsPerLine, rssMbMax, waitingMbMax } = row
  return [
    state,
    destination,
    rate === null ? 'max' : String(rate),
    linesPerS.toFixed(0),
    usPerCall.toFixed(2),
    cpuUsPerLine.toFixed(2),
    rssMbMax.toFixed(0),
    waitingMbMax.toFixed(0),
  ]
}
