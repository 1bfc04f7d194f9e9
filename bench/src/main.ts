// `npm run bench`: how fast the service is on this machine, side by side with two baselines.
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Bench } from './bench.ts'
import { readOptions, usage, UsageError } from './options.ts'
import { formatReport } from './report/table.ts'

/** What an interrupted run exits with: 128 and the number of SIGINT. */
const INTERRUPTED = 130
/** Signals closer than this are one Ctrl-C, which the terminal sends to this process and npm passes on to it. */
const SAME_INTERRUPT_MS = 500

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  if (options === 'help') {
    console.log(usage)
    return 0
  }
  if (process.platform !== 'linux') throw new UsageError('The benchmark reads /proc, so it needs Linux.')
  const bench = new Bench({
    options,
    profileFolder: join(tmpdir(), `sluice-bench-profiles-${process.pid}`),
    // Standard output is for the report alone.
    note: (text) => console.error(text),
  })
  let interruptedAtMs: number | undefined
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      interruptedAtMs ??= performance.now()
      // The processes' watchdog ends what this one leaves behind.
      if (performance.now() - interruptedAtMs > SAME_INTERRUPT_MS) process.exit(INTERRUPTED)
      bench.interrupt()
    })
  }
  try {
    const report = await bench.run()
    console.log(options.json ? JSON.stringify(report, undefined, 2) : formatReport(report))
    return 0
  } catch (error) {
    if (interruptedAtMs === undefined) throw error
    console.error('interrupted')
    return INTERRUPTED
  }
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  if (error instanceof UsageError) console.error(`${error.message}\n\n${usage}`)
  else console.error(error)
  process.exitCode = 1
}
process.exit()
