// `npm run lab -- shapes`: the API's CPU time per entry for bodies of many encoders, next to that for `JSON.stringify`'s.
import { CommandLine } from '@sluice/harness/command-line'
import { recordedEntries } from '@sluice/harness/recorded-bodies'
import { buildTestApi } from '../../../apps/api/test/support/test-api.ts'
import { alignColumns, formatNumber } from '../report.ts'
import { reference, type Shape, shapes } from './shapes.ts'

/** Requests in flight. Those that wait at the same time share a chunk. */
const CONNECTIONS = 16
/** By then the JIT has compiled what a shape needs. */
const WARM_UP_BATCHES = 25

const commandLine = new CommandLine(`npm run lab -- shapes [options]

  --only TEXT    only shapes whose name has this text
  --rounds N     measurements of each shape; the table has their median; default 7
  --requests N   per measurement; default 320
  --help         prints this text

The reference is measured before and after each shape in each round. The ratio is the median of the rounds' ratios.
`)
const values = commandLine.read({
  only: { type: 'string', default: '' },
  rounds: { type: 'string', default: '7' },
  requests: { type: 'string', default: '320' },
})
const rounds = commandLine.positive('rounds', values.rounds)
const batches = Math.ceil(commandLine.positive('requests', values.requests) / CONNECTIONS)
const chosen = shapes.filter(({ name }) => name.toLowerCase().includes(values.only.toLowerCase()))
if (chosen.length === 0) commandLine.fail(`--only: no shape has ${values.only} in its name`)

/** In this process: a request is the work from the bytes of a body to the compressed rows, for a queue that stores nothing. */
const api = buildTestApi()
api.queue.add = () => Promise.resolve(undefined)
try {
  await send(reference, 4 * WARM_UP_BATCHES)
  const cells = [['shape', 'bytes/entry', 'µs/entry', 'reference', 'ratio']]
  for (const shape of chosen) {
    await send(shape, WARM_UP_BATCHES)
    const measured: { cost: number; base: number }[] = []
    let before = await costUs(reference)
    for (let round = 0; round < rounds; round += 1) {
      const cost = await costUs(shape)
      const after = await costUs(reference)
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
  await api.close()
}
process.exit()

/** @throws Error if a request is rejected */
async function send({ name, url, headers, body }: Shape, count: number): Promise<void> {
  const given = { url, headers: { 'dd-api-key': api.key, ...headers } }
  for (let batch = 0; batch < count; batch += 1) {
    const responses = await Promise.all(Array.from({ length: CONNECTIONS }, () => api.post(body, given)))
    const rejected = responses.find(({ statusCode }) => statusCode >= 300)
    if (rejected !== undefined) throw new Error(`${name} was answered with ${rejected.statusCode}`)
  }
}

/** The CPU time per entry. */
async function costUs(shape: Shape): Promise<number> {
  const before = process.cpuUsage()
  await send(shape, batches)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / (batches * CONNECTIONS * recordedEntries.length)
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0
}
