// The fuzzer, `npm run fuzz`: sends requests that are wrong in every way that was thought of to a system of its own, and
// checks each answer and what is stored.
import { anySeed, CommandLine } from '../command-line.ts'
import { describeReport, hasPassed } from './report.ts'
import { runFuzz } from './run.ts'

const commandLine = new CommandLine(`npm run fuzz -- [options]

  --requests N   100000 without it
  --seed S       gives the same requests again
  --only N       sends one of a seed's requests alone

Ends with status 1 when anything is not as it must be.
`)

const values = commandLine.read({
  requests: { type: 'string', default: '100000' },
  seed: { type: 'string', default: anySeed() },
  only: { type: 'string' },
})
const seed = readNumber('seed', values.seed)
const requests = readNumber('requests', values.requests)
const only = values.only === undefined ? undefined : readNumber('only', values.only)
const log = (line: string): void => void process.stdout.write(`${line}\n`)

log(only === undefined ? `seed ${seed}, ${requests} requests` : `seed ${seed}, request ${only}`)
const range = only === undefined ? { first: 0, end: requests } : { first: only, end: only + 1 }
const report = await runFuzz({ seed, ...range, log })
log(`\n${describeReport(report)}`)
process.exitCode = hasPassed(report) ? 0 : 1

function readNumber(name: string, text: string): number {
  const number = Number(text)
  const isWhole = Number.isSafeInteger(number) && number >= 0
  return isWhole ? number : commandLine.refuse(`--${name} must be a whole number`)
}
