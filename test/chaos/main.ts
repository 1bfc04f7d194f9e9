// `npm run lab -- chaos`: sends entries while processes, connections, disks and clocks fail, then compares what was acknowledged with what is
// stored.
import { CommandLine, randomSeed } from '@sluice/harness/command-line'
import { join } from 'node:path'
import { planRun, runChaos, runSettings } from './run.ts'
import { describeFault } from './schedule.ts'

const commandLine = new CommandLine(`npm run lab -- chaos [options]

  --minutes N   duration; default 1
  --seed S      repeats the schedule of an earlier run; default random
  --rate N      entries per second; default ${runSettings.entriesPerSecond}
  --power       cuts the power of Redis and ClickHouse, too; needs root, two loop devices, e2fsprogs and perl
  --plan        prints the schedule without running it

Exits with status 1 if an entry was lost or duplicated, or a process crashed.
`)

const values = commandLine.read({
  minutes: { type: 'string', default: '1' },
  seed: { type: 'string', default: randomSeed() },
  rate: { type: 'string', default: String(runSettings.entriesPerSecond) },
  plan: { type: 'boolean', default: false },
  power: { type: 'boolean', default: false },
})
const minutes = commandLine.positive('minutes', values.minutes)
const seed = commandLine.nonNegativeInteger('seed', values.seed)
const entriesPerSecond = commandLine.positive('rate', values.rate)
const hasPowerCuts = values.power
const log = (line: string): void => void process.stdout.write(`${line}\n`)

const plan = planRun({ seed, minutes, hasPowerCuts })
log(`seed ${seed}, ${minutes} minutes, ${plan.length} faults, ${entriesPerSecond} entries per second`)
if (values.plan) {
  for (const fault of plan) log(describeFault(fault))
} else {
  const { report, keptDataDir } = await runChaos({ seed, minutes, entriesPerSecond, hasPowerCuts, log })
  log(`\n${report.text}`)
  if (keptDataDir !== undefined) log(`the logs of the processes are in ${join(keptDataDir, 'logs')}`)
  process.exitCode = report.passed ? 0 : 1
}
