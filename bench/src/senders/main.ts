// `npm run lab -- senders`: what a call of the TypeScript client costs, its memory while the API is unavailable, and its throughput.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { CommandLine } from '@sluice/harness/command-line'
import { Supervisor } from '@sluice/local'
import { readNames } from '../options.ts'
import { alignColumns, formatNumber } from '../report.ts'
import { startSluice } from '../systems.ts'
import type { SenderFigures, SenderRun } from './sender-main.ts'

/** An API that never responds, Sluice, and Sluice with a spool. */
const cases = ['silent', 'sluice', 'sluice-spool'] as const

const commandLine = new CommandLine(`npm run lab -- senders [options]

  --case NAMES        ${cases.join(',')}; default all
  --seconds N         length of each measurement; default 5
  --dead-seconds N    length of each measurement without an API that answers; default 60
  --help              prints this text
`)
const values = commandLine.read({
  case: { type: 'string', multiple: true },
  seconds: { type: 'string', default: '5' },
  'dead-seconds': { type: 'string', default: '60' },
})
const chosen = readNames(commandLine, '--case', values.case, cases)
const durationMs = commandLine.positive('seconds', values.seconds) * 1_000
const deadMs = commandLine.positive('dead-seconds', values['dead-seconds']) * 1_000

const header = ['case', 'calls', 'µs/call', 'CPU µs/call: process', 'accepted/s', 'dropped', 'RSS max MB']
const rows = [header]
for (const name of chosen) {
  console.error(name)
  const supervisor = new Supervisor()
  const folder = await mkdtemp(join(tmpdir(), 'spool-'))
  try {
    const isSilent = name === 'silent'
    const { url, apiKey } = isSilent ? await startSilent() : await startSluice({ supervisor })
    const figures = await runSender({
      url,
      apiKey,
      pace: isSilent ? 'flood' : 'fill',
      durationMs: isSilent ? deadMs : durationMs,
      spoolDirectory: name === 'sluice-spool' ? folder : undefined,
    })
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

async function startSilent() {
  const server = createServer((socket) => socket.on('error', () => undefined).resume()).unref()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, apiKey: 'slk_bench' }
}
