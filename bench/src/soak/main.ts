// `npm run soak`: a steady load for an hour, and what grows meanwhile.
import { parseArgs } from 'node:util'
import { Supervisor } from '@sluice/local'
import { scenarios } from '../scenarios.ts'
import { soak, type SoakSample } from './soak.ts'

const usage = `npm run soak -- [options]

  --minutes N       60 without it
  --rate N          entries a second; choose 70 % of what npm run bench finds (70000 without it)
  --scenario NAME   ${scenarios.map(({ name }) => name).join(', ')}; batch-100 without it
  --json            prints JSON at the end (npm run --silent soak -- --json > FILE)
`

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    rate: { type: 'string', default: '70000' },
    scenario: { type: 'string', default: 'batch-100' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
})
const scenario = scenarios.find(({ name }) => name === values.scenario)
const minutes = Number(values.minutes)
const entriesPerS = Number(values.rate)
if (values.help || scenario === undefined || !(minutes >= 1) || !(entriesPerS > 0)) {
  console.error(usage)
  process.exit(values.help ? 0 : 1)
}

const supervisor = await Supervisor.open()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void supervisor.stop({ force: true }).finally(() => process.exit(1)))
}
try {
  console.error(
    'minute  entries/s  refused  ack p50/p99 ms  backlog  RSS MB: API worker Redis ClickHouse  ' +
      'handles: the same  Redis keys, KB  parts',
  )
  const report = await soak({ scenario, minutes, entriesPerS }, supervisor, (sample) =>
    console.error(lineOf(sample)),
  )
  if (values.json) console.log(JSON.stringify(report, undefined, 2))
  const { accepted, stored, samples } = report
  const refused = samples.reduce((sum, sample) => sum + sample.refused, 0)
  console.error(`accepted ${accepted}, stored ${stored}; ${refused} requests refused`)
  // The entries of a request that was answered with 503 may be stored all the same, once.
  if (stored < accepted || (stored > accepted && refused === 0)) process.exitCode = 1
} finally {
  await supervisor.stop()
}

function lineOf(sample: SoakSample): string {
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
