// `npm run lab -- shapes`: the API's CPU time per entry for bodies of many encoders, next to that for `JSON.stringify`'s.
import { CommandLine } from '@sluice/harness/command-line'
import { recordedEntries } from '@sluice/harness/recorded-bodies'
import { alignColumns, formatNumber } from '../report.ts'
import { apiHere, apiOverHttp, type MeasuredApi } from './api.ts'
import { reference, type Shape, shapes } from './shapes.ts'

/** Requests in flight. Those that wait at the same time share a chunk. */
const CONNECTIONS = 16
/** By then the JIT has compiled what a shape needs. */
const WARM_UP_BATCHES = 25

const commandLine = new CommandLine(`npm run lab -- shapes [options]

  --only TEXT    only shapes whose name has this text
  --rounds N     measurements of each shape; the table has their median; default 7
  --requests N   per measurement; default 320
  --http         measures an API in a process of its own, over HTTP; by default one in this process, without Redis
  --help         prints this text

The reference is measured before and after each shape in each round. The ratio is the median of the rounds' ratios.
`)
const values = commandLine.read({
  only: { type: 'string', default: '' },
  rounds: { type: 'string', default: '7' },
  requests: { type: 'string', default: '320' },
  http: { type: 'boolean', default: false },
})
const rounds = commandLine.positive('rounds', values.rounds)
const batches = Math.ceil(commandLine.positive('requests', values.requests) / CONNECTIONS)
const chosen = shapes.filter(({ name }) => name.toLowerCase().includes(values.only.toLowerCase()))
if (chosen.length === 0) commandLine.fail(`--only: no shape has ${values.only} in its name`)

const api = values.http ? await apiOverHttp() : apiHere()
try {
  await send(api, reference, 4 * WARM_UP_BATCHES)
  const cells = [['shape', 'bytes/entry', 'µs/entry', 'reference', 'ratio']]
  for (const shape of chosen) {
    await send(api, shape, WARM_UP_BATCHES)
    const measured: { cost: number; base: number }[] = []
    let before = await costUs(api, reference)
    for (let round = 0; round < rounds; round += 1) {
      const cost = await costUs(api, shape)
      const after = await costUs(api, reference)
      measured.push({ cost, base: (before + after) / 2 })
      before = after
    }
    cells.push([
      shape.name,
      formatNumber(shape.body.length / recordedEntries.length, 0),
      formatNumber(median(measured.map(({ cost }) => cost)), 2),
      formatNumber(median(measured.map(({ base }) => base)), 2),
      formatNumber(median(measured.map(({ cost, base }) => cost / base)), 2),
    ])
    process.stderr.write(`${cells.at(-1)?.join('  ')}\n`)
  }
  console.log(alignColumns(cells).join('\n'))
} finally {
  await api.stop()
}
process.exit()

/** @throws Error if a request is rejected */
async function send(target: MeasuredApi, shape: Shape, count: number): Promise<void> {
  for (let batch = 0; batch < count; batch += 1) {
    const statuses = await Promise.all(Array.from({ length: CONNECTIONS }, () => target.send(shape)))
    const rejected = statuses.find((status) => status >= 300)
    if (rejected !== undefined) throw new Error(`${shape.name} was answered with ${rejected}`)
  }
}

/** The CPU time per entry. */
async function costUs(target: MeasuredApi, shape: Shape): Promise<number> {
  const startMs = target.cpuMs()
  await send(target, shape, batches)
  return ((target.cpuMs() - startMs) * 1_000) / (batches * CONNECTIONS * recordedEntries.length)
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0
}
