// `npm run bench`: measures the throughput and latency of Sluice on this machine, and compares it with two baselines.
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Bench } from './bench.ts'
import { readOptions } from './options.ts'
import { formatReport } from './report/table.ts'

/** The exit code of an interrupted run: 128 plus the number of SIGINT. */
const INTERRUPTED = 130
/** Signals within this time are one Ctrl-C: the terminal sends it to this process, and npm forwards it as well. */
const SAME_INTERRUPT_MS = 500

async function main(): Promise<number> {
  const options = readOptions()
  const bench = new Bench({
    options,
    profileFolder: join(tmpdir(), `sluice-bench-profiles-${process.pid}`),
    // Standard output is reserved for the report.
    log: (text) => console.error(text),
  })
  let interruptedAtMs: number | undefined
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      interruptedAtMs ??= performance.now()
      // The watchdog kills the processes that this exit leaves running.
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
  process.exitCode = await main()
} catch (error) {
  console.error(error)
  process.exitCode = 1
}
process.exit()
