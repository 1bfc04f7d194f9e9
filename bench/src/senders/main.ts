// `npm run lab -- senders`: what a call of the TypeScript client costs, its memory while the API is unavailable, and its throughput.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { CommandLine } from '@sluice/harness/command-line'
import { Supervisor } from '@sluice/local'
import { readNames } from '../options.ts'
import { alignColumns, formatNumber } from '../report.ts'
import type { SenderFigures, SenderRun } from './sender-main.ts'
import { startAnswering, startRealSluice, startSilent, type Target } from './targets.ts'

interface SenderCase {
  readonly name: string
  readonly start: (supervisor: Supervisor) => Promise<Target>
  readonly pace: SenderRun['pace']
  readonly hasSpool: boolean
}

const cases: readonly SenderCase[] = [
  { name: 'silent', start: startSilent, pace: 'flood', hasSpool: false },
  { name: 'answering', start: startAnswering, pace: 'fill', hasSpool: false },
  { name: 'sluice', start: startRealSluice, pace: 'fill', hasSpool: false },
  { name: 'sluice-spool', start: startRealSluice, pace: 'fill', hasSpool: true },
]

const commandLine = new CommandLine(`npm run lab -- senders [options]

  --case NAMES        ${cases.map(({ name }) => name).join(',')}; default all
  --seconds N         length of each measurement; default 5
  --dead-seconds N    length of each measurement without an API that answers; default 60
  --help              prints this text
`)
const values = commandLine.read({
  case: { type: 'string', multiple: true },
  seconds: { type: 'string', default: '5' },
  'dead-seconds': { type: 'string', default: '60' },
})
const chosen = readNames(commandLine, '--case', values.case, cases, ({ name }) => name)
const durationMs = commandLine.positive('seconds', values.seconds) * 1_000
const deadMs = commandLine.positive('dead-seconds', values['dead-seconds']) * 1_000

const header = ['case', 'calls', 'µs/call', 'CPU µs/call: process', 'accepted/s', 'dropped', 'RSS max MB']
const rows = [header]
for (const { name, start, pace, hasSpool } of chosen) {
  console.error(name)
  const supervisor = await Supervisor.open()
  const folder = await mkdtemp(join(tmpdir(), 'spool-'))
  try {
    const target = await start(supervisor)
    const spoolDirectory = hasSpool ? folder : undefined
    const run = { ...target, pace, durationMs: pace === 'flood' ? deadMs : durationMs, spoolDirectory }
    const figures = await runSender(run)
    rows.push([
      name,
      formatNumber(figures.calls, 0),
      formatNumber(figures.callUs, 1),
      formatNumber(figures.processUs, 1),
      formatNumber((figures.accepted / figures.elapsedMs) * 1_000, 0),
      formatNumber(figures.dropped, 0),
      formatNumber(figures.rssMaxBytes / 1e6, 0),
    ])
  } finally {
    await supervisor.stop()
    await rm(folder, { recursive: true, force: true })
  }
}
console.log(alignColumns(rows).join('\n'))
process.exit()

async function runSender(run: SenderRun): Promise<SenderFigures> {
  const path = fileURLToPath(new URL('sender-main.ts', import.meta.url))
  const child = spawn(process.execPath, [path, JSON.stringify(run)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')])
  if (code !== 0) throw new Error(`the sender exited with ${String(code)}`)
  return JSON.parse(output) as SenderFigures
}
