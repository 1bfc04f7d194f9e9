// `npm run lab -- fuzz`: sends invalid requests of every known kind to a separate installation, and checks each response and what is stored.
import { CommandLine, randomSeed } from '@sluice/harness/command-line'
import { describeReport, hasPassed } from './report.ts'
import { runFuzz } from './run.ts'

const commandLine = new CommandLine(`npm run lab -- fuzz [options]

  --requests N   number of requests; default 100000
  --seed S       repeats the requests of an earlier run; default random
  --only N       sends only request N of the seed

Exits with status 1 if an answer or a stored row is wrong.
`)

const values = commandLine.read({
  requests: { type: 'string', default: '100000' },
  seed: { type: 'string', default: randomSeed() },
  only: { type: 'string' },
})
const seed = commandLine.nonNegativeInteger('seed', values.seed)
const requests = commandLine.positive('requests', values.requests)
const only = values.only === undefined ? undefined : commandLine.nonNegativeInteger('only', values.only)
const log = (line: string): void => void process.stdout.write(`${line}\n`)

log(only === undefined ? `seed ${seed}, ${requests} requests` : `seed ${seed}, request ${only}`)
const range = only === undefined ? { first: 0, end: requests } : { first: only, end: only + 1 }
const report = await runFuzz({ seed, ...range, log })
log(`\n${describeReport(report)}`)
process.exitCode = hasPassed(report) ? 0 : 1
