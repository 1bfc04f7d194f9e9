// `npm run bench:clients`: what clients of different numbers and rates get, and what their chunks cost.
import { CommandLine } from '@sluice/harness/command-line'
import { Supervisor } from '@sluice/local'
import { readNames, readPositive } from '../options.ts'
import { alignColumns } from '../report/table.ts'
import { clientLoads } from './client-loads.ts'
import { type ClientFigures, measureClients } from './measure-clients.ts'

const commandLine = new CommandLine(`npm run bench:clients -- [options]

  --load NAMES   ${clientLoads.map(({ name }) => name).join(',')}: connections, or connections x entries per request; default all
  --seconds N    length of each measurement window; default 5
  --json         prints JSON instead of a table (npm run --silent bench:clients -- --json > FILE)
  --help         prints this text
`)
const values = commandLine.read({
  load: { type: 'string', multiple: true },
  seconds: { type: 'string', default: '5' },
  json: { type: 'boolean', default: false },
})
const loads = readNames(commandLine, '--load', values.load, clientLoads, ({ name }) => name)
const windowMs = readPositive(commandLine, '--seconds', values.seconds) * 1_000

let running: Supervisor | undefined
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void running?.stop({ force: true }).finally(() => process.exit(1)))
}
const figures: ClientFigures[] = []
for (const load of loads) {
  console.error(load.name)
  const supervisor = await Supervisor.open()
  running = supervisor
  try {
    figures.push(await measureClients(supervisor, load, windowMs))
  } finally {
    await supervisor.stop()
  }
}
console.log(values.json ? JSON.stringify(figures, undefined, 2) : formatFigures(figures))
process.exit()

function formatFigures(all: readonly ClientFigures[]): string {
  const header = [
    'load',
    '',
    'requests/s',
    'stored/s',
    'p50 ms',
    'p99 ms',
    'chunks/s',
    'rows/chunk',
    'CPU µs/entry: API',
    'Redis',
    'all',
    'cores: Redis',
    'generator',
    'others',
    'Redis B/entry',
  ]
  return alignColumns([header, ...all.map((each) => formatRow(each))]).join('\n')
}

function formatRow(each: ClientFigures): string[] {
  const { cpuUs } = each
  const numbers: readonly (readonly [value: number, digits: number])[] = [
    [each.requestsPerS, 0],
    [each.storedPerS, 0],
    [each.ackP50Ms, 2],
    [each.ackP99Ms, 1],
    [each.chunksPerS, 0],
    [each.rowsPerChunk, 1],
    [cpuUs.api, 1],
    [cpuUs.redis, 1],
    [cpuUs.all, 1],
    [each.redisCores, 2],
    [each.generatorCores, 2],
    [each.othersCores, 2],
    [each.redisBytesPerEntry, 0],
  ]
  const cells = numbers.map(([value, digits]) =>
    value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits }),
  )
  return [each.load, each.rejected, ...cells]
}
