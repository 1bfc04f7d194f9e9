// `npm run simulate:scaling`: starts and stops workers by the signals of `/metrics`, as KEDA would, under a ramp and a burst.
import { CommandLine } from '@sluice/harness/command-line'
import { Supervisor } from '@sluice/local'
import { readPositive } from '../options.ts'
import { type AutoscalingSample, runAutoscaling } from './autoscaling-run.ts'

const commandLine = new CommandLine(`npm run simulate:scaling -- [options]

  --delay N       ms by which each insert is delayed; default 1000
  --rows N        maximum of rows per insert; default 2000
  --workers N     maximum of workers; default 6
  --speed N       how many times faster than in the Helm chart: age, interval, time before a worker stops; default 5
  --help          prints this text

Delay and rows make the workers the bottleneck, since more processes do not give one machine more cores.
Exits with status 1 if an entry was lost or duplicated.
`)

const values = commandLine.read({
  delay: { type: 'string', default: '1000' },
  rows: { type: 'string', default: '2000' },
  workers: { type: 'string', default: '6' },
  speed: { type: 'string', default: '5' },
})
const options = {
  insertDelayMs: readPositive(commandLine, '--delay', values.delay),
  batchRowsMax: readPositive(commandLine, '--rows', values.rows),
  workersMax: readPositive(commandLine, '--workers', values.workers),
  speed: readPositive(commandLine, '--speed', values.speed),
}

const supervisor = await Supervisor.open()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void supervisor.stop({ force: true }).finally(() => process.exit(1)))
}
try {
  console.log(
    '  s  phase        accepted/s  rejected  ack p99 ms  oldest s  rows in queue  chunks: waiting  in hand  workers  requested',
  )
  const samples: AutoscalingSample[] = []
  const report = await runAutoscaling(options, supervisor, (sample) => {
    samples.push(sample)
    console.log(formatSample(sample))
  })
  const { workerRowsPerS, targets, accepted, stored, distinct, drainMs } = report
  const highest = (valueOf: (sample: AutoscalingSample) => number): number =>
    Math.max(...samples.map(valueOf))
  console.log(
    [
      `each of ${options.workersMax} workers stores ${workerRowsPerS} rows/s; targets: age ${targets.oldestAgeS} s, ${targets.rowsPerWorker} rows for each worker`,
      `highest: age ${highest(({ signals }) => signals?.oldestAgeS ?? 0).toFixed(1)} s, ${highest(({ signals }) => signals?.rows ?? 0)} rows, ` +
        `${highest(({ workers }) => workers)} workers`,
      `accepted ${accepted}, stored ${stored} rows with ${distinct} ids, the last ${(drainMs / 1_000).toFixed(1)} s after the last request`,
    ].join('\n'),
  )
  const rejected = samples.some((sample) => sample.rejected > 0)
  // The entries of a request that was answered with 503 may still be stored, once.
  if (distinct !== stored || stored < accepted || (stored > accepted && !rejected)) process.exitCode = 1
} finally {
  await supervisor.stop()
}

function formatSample({ signals, ...sample }: AutoscalingSample): string {
  return [
    String(sample.atS).padStart(3),
    sample.phase.padEnd(11),
    String(Math.round(sample.acceptedPerS)).padStart(10),
    String(sample.rejected).padStart(8),
    sample.ackP99Ms.toFixed(1).padStart(10),
    (signals?.oldestAgeS.toFixed(1) ?? '–').padStart(8),
    String(signals?.rows ?? '–').padStart(13),
    String(sample.waitingChunks).padStart(15),
    String(sample.heldChunks).padStart(7),
    String(sample.workers).padStart(7),
    String(sample.requested).padStart(9),
  ].join('  ')
}
