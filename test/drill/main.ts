// `npm run lab -- drill`: sends entries to an installation on this machine while an operator practises a runbook, then compares what was
// acknowledged with what is stored.
import { CommandLine } from '@sluice/harness/command-line'
import { randomUUID } from 'node:crypto'
import { runDrill } from './drill.ts'

const commandLine = new CommandLine(`npm run lab -- drill [options]

  --rate N           entries per second; default 300
  --seconds N        duration; default 60
  --drain-seconds N  how long the queue may take to become empty at the end; default 600
  --shards N         shards that are in use at any time of the run; default 1

SLUICE_API_URL has the addresses of API processes, separated by commas, and SLUICE_API_KEY a key. REDIS_URL, SLUICE_PREFIX and
CLICKHOUSE_URL, CLICKHOUSE_USERNAME, CLICKHOUSE_PASSWORD and CLICKHOUSE_DATABASE are those of the installation.
Exits with status 1 if an acknowledged entry is lost or duplicated.
`)

const values = commandLine.read({
  rate: { type: 'string', default: '300' },
  seconds: { type: 'string', default: '60' },
  'drain-seconds': { type: 'string', default: '600' },
  shards: { type: 'string', default: '1' },
})
const { env } = process
const apiKey = env['SLUICE_API_KEY'] ?? commandLine.fail('SLUICE_API_KEY is not set')

const passed = await runDrill(
  {
    apiUrls: (env['SLUICE_API_URL'] ?? 'http://127.0.0.1:3000').split(','),
    apiKey,
    redisUrl: env['REDIS_URL'] ?? 'redis://127.0.0.1:6379',
    prefix: env['SLUICE_PREFIX'] ?? 'sluice',
    shards: commandLine.positive('shards', values.shards),
    clickhouse: {
      url: env['CLICKHOUSE_URL'] ?? 'http://127.0.0.1:8123',
      username: env['CLICKHOUSE_USERNAME'] ?? 'default',
      password: env['CLICKHOUSE_PASSWORD'] ?? '',
      database: env['CLICKHOUSE_DATABASE'] ?? 'sluice',
    },
  },
  {
    label: `drill-${randomUUID()}`,
    entriesPerSecond: commandLine.positive('rate', values.rate),
    seconds: commandLine.positive('seconds', values.seconds),
    drainSeconds: commandLine.positive('drain-seconds', values['drain-seconds']),
    log: (line) => void process.stdout.write(`${line}\n`),
  },
)
process.exitCode = passed ? 0 : 1
