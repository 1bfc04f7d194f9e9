// The chaos harness, `npm run chaos`: sends entries while processes are killed and frozen and connections cut, then compares
// what was acknowledged with what is stored.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { anySeed, CommandLine } from '../command-line.ts'
import { describeReport } from './report.ts'
import { planRun, runChaos, runSettings } from './run.ts'
import { describeFault } from './schedule.ts'

const commandLine = new CommandLine(`npm run chaos -- [options]

  --minutes N   1 without it
  --seed S      gives the same schedule again
  --rate N      entries a second; ${runSettings.entriesPerSecond} without it
  --plan        prints the schedule, and does nothing
  --json FILE   writes a report

Ends with status 1 when anything was lost, doubled or crashed.
`)

const values = commandLine.read({
  minutes: { type: 'string', default: '1' },
  seed: { type: 'string', default: anySeed() },
  rate: { type: 'string', default: String(runSettings.entriesPerSecond) },
  json: { type: 'string' },
  plan: { type: 'boolean', default: false },
})
const minutes = readNumber('minutes', values.minutes)
const seed = readNumber('seed', values.seed)
const entriesPerSecond = readNumber('rate', values.rate)
const log = (line: string): void => void process.stdout.write(`${line}\n`)

const plan = planRun({ seed, minutes })
log(`seed ${seed}, ${minutes} minutes, ${plan.length} faults, ${entriesPerSecond} entries a second`)
if (values.plan) {
  for (const fault of plan) log(describeFault(fault))
} else {
  const { report, keptDataDir } = await runChaos({ seed, minutes, entriesPerSecond, log })
  log(`\n${describeReport(report)}`)
  if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(report, null, 2)}\n`)
  if (keptDataDir !== undefined) log(`the processes' logs are in ${join(keptDataDir, 'logs')}`)
  process.exitCode = report.passed ? 0 : 1
}

function readNumber(name: string, text: string): number {
  const number = Number(text)
  return number > 0 ? number : commandLine.refuse(`--${name} must be a number above 0`)
}
