// `npm run lab -- pino`: what logging with pino costs an application, with the transport for Sluice and without it.
import { CommandLine } from '@sluice/harness/command-line'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { alignColumns } from '../report.ts'
import type { PinoDestination, PinoFigures, PinoLoad } from './pino-application-main.ts'
import { startAnswering } from './targets.ts'

const commandLine = new CommandLine(`npm run lab -- pino [options]

  --seconds N       length of each measurement window; default 5
  --down-seconds N  how long the API is down; default 60
  --help            prints this text
`)
const values = commandLine.read({
  seconds: { type: 'string', default: '5' },
  'down-seconds': { type: 'string', default: '60' },
})
const windowMs = commandLine.positive('seconds', values.seconds) * 1_000
const downMs = commandLine.positive('down-seconds', values['down-seconds']) * 1_000

/** Nothing listens there. */
const DOWN = 'http://127.0.0.1:4'
const rates = [1_000, 10_000, Infinity]

const folder = mkdtempSync(join(tmpdir(), 'bench-pino-'))
const rows: string[][] = []
try {
  const { url: apiUrl } = await startAnswering()
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
  rmSync(folder, { recursive: true })
}
const header = ['API', 'destination', 'rate', 'lines/s', 'µs/call', 'CPU µs/line', 'RSS MB', 'waiting MB']
console.log(alignColumns([header, ...rows]).join('\n'))
process.exit()

async function measure(state: 'up' | 'down', load: PinoLoad): Promise<void> {
  const { destination, linesPerS } = load
  console.error(`${destination}, ${linesPerS} lines/s, the API is ${state}`)
  const program = fileURLToPath(new URL('pino-application-main.ts', import.meta.url))
  const application = fork(program, [JSON.stringify(load)])
  let figures: PinoFigures | undefined
  application.once('message', (message: PinoFigures) => {
    figures = message
  })
  const [code] = (await once(application, 'close')) as [number | null]
  // pino may end an application because of its transport.
  if (figures === undefined || code !== 0) throw new Error(`the application ended with ${code}`)
  rows.push([
    state,
    destination,
    Number.isFinite(linesPerS) ? String(linesPerS) : 'max',
    figures.linesPerS.toFixed(0),
    figures.usPerCall.toFixed(2),
    figures.cpuUsPerLine.toFixed(2),
    figures.rssMbMax.toFixed(0),
    figures.waitingMbMax.toFixed(0),
  ])
}
