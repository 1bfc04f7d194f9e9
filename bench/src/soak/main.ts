// `npm run soak`: keeps a steady load on Sluice, for an hour by default, and reports what grows.
import { CommandLine } from '@sluice/harness/command-line'
import { Supervisor } from '@sluice/local'
import { scenarios } from '../load/scenarios.ts'
import { readPositive } from '../options.ts'
import { runSoak, type SoakSample } from './soak.ts'

const scenarioNames = scenarios.map(({ name }) => name).join(', ')
const commandLine = new CommandLine(`npm run soak -- [options]

  --minutes N       duration, at least 1; default 60
  --rate N          entries per second; choose 70 % of the highest sustained rate of npm run bench; default 70000
  --scenario NAME   one of ${scenarioNames}; default batch-100
  --json            prints JSON at the end (npm run --silent soak -- --json > FILE)
  --help            prints this text

Exits with status 1 if an entry was lost or duplicated.
`)

const values = commandLine.read({
  minutes: { type: 'string', default: '60' },
  rate: { type: 'string', default: '70000' },
  scenario: { type: 'string', default: 'batch-100' },
  json: { type: 'boolean', default: false },
})
const scenario =
  scenarios.find(({ name }) => name === values.scenario) ??
  commandLine.fail(`--scenario must be one of ${scenarioNames}`)
const minutes = Number(values.minutes)
if (!(minutes >= 1)) commandLine.fail('--minutes must be a number of at least 1')
const entriesPerS = readPositive(commandLine, '--rate', values.rate)

const supervisor = await Supervisor.open()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void supervisor.stop({ force: true }).finally(() => process.exit(1)))
}
try {
  console.error(
    'minute  entries/s  rejected  ack p50/p99 ms  backlog  RSS MB: API worker Redis ClickHouse  ' +
      'handles: API worker Redis ClickHouse  Redis keys, KB  parts',
  )
  const report = await runSoak({ scenario, minutes, entriesPerS }, supervisor, (sample) =>
    console.error(formatSample(sample)),
  )
  if (values.json) console.log(JSON.stringify(report, undefined, 2))
  const { accepted, stored, samples } = report
  const rejected = samples.reduce((sum, sample) => sum + sample.refused, 0)
  console.error(`accepted ${accepted}, stored ${stored}; ${rejected} requests rejected`)
  // The entries of a request that was answered with 503 may still be stored, once.
  if (stored < accepted || (stored > accepted && rejected === 0)) process.exitCode = 1
} finally {
  await supervisor.stop()
}

function formatSample(sample: SoakSample): string {
  const { api, worker, redis, clickhouse } = sample.sizes
  const roles = [api, worker, redis, clickhouse]
  return [
    sample.minute,
    Math.round(sample.acceptedPerS),
    sample.refused,
    `${sample.ackP50Ms.toFixed(1)}/${sample.ackP99Ms.toFixed(1)}`,
    sample.backlog,
    roles.map((role) => Math.round((role?.residentBytes ?? 0) / 2 ** 20)).join(' '),
    roles.map((role) => role?.handles ?? 0).join(' '),
    `${sample.redisKeys} ${Math.round(sample.redisBytes / 1_024)}`,
    sample.clickhouseParts,
  ].join('  ')
}
