// `npm run lab -- simulate`: runs random schedules of requests and faults with the code of API and worker against simulated servers.
import { CommandLine, randomSeed } from '@sluice/harness/command-line'
import { checkMutants, mutants } from './mutants.ts'
import { runSchedules } from './runner.ts'
import { runSchedule } from './schedule.ts'

const SCHEDULES = 10_000
/** The rarest one needs tens of thousands. */
const MUTANT_SCHEDULES = 100_000

const commandLine = new CommandLine(`npm run lab -- simulate [options]

  --schedules N   number of schedules; default ${SCHEDULES}, and at most ${MUTANT_SCHEDULES} for each mutant
  --seed S        the first seed; default random
  --trace S       runs the schedule of one seed, and prints what happens
  --mutants       removes each guard in turn, and reports which schedule detects it

Exits with status 1 if an entry was lost or duplicated, or a mutant was not detected.
`)
const values = commandLine.read({
  schedules: { type: 'string' },
  seed: { type: 'string', default: randomSeed() },
  trace: { type: 'string' },
  mutants: { type: 'boolean', default: false },
})
const log = (line: string): void => void process.stdout.write(`${line}\n`)
const seed = commandLine.nonNegativeInteger('seed', values.seed)

if (values.trace !== undefined) await trace(Number(values.trace))
else if (values.mutants) await runMutants(Number(values.schedules ?? MUTANT_SCHEDULES))
else await run(Number(values.schedules ?? SCHEDULES))

async function run(count: number): Promise<void> {
  const startedMs = performance.now()
  const report = (schedules: number): string =>
    `${schedules} of ${count} schedules after ${Math.round((performance.now() - startedMs) / 1_000)} s`
  let nextReport = count / 20
  const result = await runSchedules({ seed, count }, ({ schedules }) => {
    if (schedules < nextReport) return
    nextReport += count / 20
    log(report(schedules))
  })
  log(`seed ${seed}: ${report(result.schedules)}`)
  log(`${result.acknowledged} entries acknowledged, ${result.faults} faults`)
  if (result.failure === undefined) return log('0 lost, 0 duplicated')
  log(`seed ${result.failure.seed} fails: ${result.failure.reason}`)
  await trace(result.failure.seed)
  process.exitCode = 1
}

async function runMutants(count: number): Promise<void> {
  checkMutants()
  for (const [mutant, { name }] of mutants.entries()) {
    const { schedules, failure } = await runSchedules({ seed, count, mutant })
    if (failure === undefined) process.exitCode = 1
    const verdict = failure === undefined ? 'NOT DETECTED' : `detected: ${failure.reason}`
    log(`${String(schedules).padStart(7)} schedules  ${name}: ${verdict}`)
  }
}

async function trace(ofSeed: number): Promise<void> {
  const { failure, trace: events } = await runSchedule(ofSeed, true)
  for (const event of events) log(event)
  log(failure ?? 'every acknowledged entry is stored once')
}
