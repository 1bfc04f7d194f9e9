// `npm run lab -- collector`: sends records through an OpenTelemetry Collector while API and worker are killed, then counts what is stored.
import { seededRandom } from '@sluice/harness'
import { CommandLine, randomSeed } from '@sluice/harness/command-line'
import { isInstalled } from '../sources/programs.ts'
import { COLLECTOR } from '../sources/collector.ts'
import { runCollector } from './run.ts'

const commandLine = new CommandLine(`npm run lab -- collector [options]

  --records N         default 100000
  --rate N            records per second, while processes are killed; default 10000
  --seed S            default random
  --without-key       sends requests without Sluice-Idempotency: body
  --kill-collector    kills the Collector too
  --files             writes lines to files that are rotated, which the Collector reads

Needs ${COLLECTOR} on the PATH: see tools/collector.sh. Exits with status 1 if a record is lost, or, with the header and a Collector that
is not killed, duplicated.
`)

const values = commandLine.read({
  records: { type: 'string', default: '100000' },
  rate: { type: 'string', default: '10000' },
  seed: { type: 'string', default: randomSeed() },
  'without-key': { type: 'boolean', default: false },
  'kill-collector': { type: 'boolean', default: false },
  files: { type: 'boolean', default: false },
})
const records = commandLine.positive('records', values.records)
const recordsPerSecond = commandLine.positive('rate', values.rate)
const seed = commandLine.nonNegativeInteger('seed', values.seed)
if (!isInstalled(COLLECTOR)) commandLine.fail(`${COLLECTOR} is not on the PATH: see tools/collector.sh`)

const log = (line: string): void => void process.stdout.write(`${line}\n`)
log(`seed ${seed}, ${records} records`)
const isIdempotent = !values['without-key']
const killsCollector = values['kill-collector']
const report = await runCollector({
  records,
  recordsPerSecond,
  random: seededRandom(seed),
  isIdempotent,
  killsCollector,
  readsFiles: values.files,
  log,
})
log(JSON.stringify(report, null, 2))
const mayDuplicate = !isIdempotent || killsCollector
process.exitCode = report.lost === 0 && (mayDuplicate || report.duplicated === 0) ? 0 : 1
