import { processClock } from '@sluice/runtime'
import type { Command } from 'commander'
import { type Context, INTERRUPTED_EXIT_CODE } from '../context.ts'
import { shopRequest } from '../demo/shop-traffic.ts'
import { integer, SLUICE, withConnections, withExamples } from '../options.ts'
import { SendReport } from '../send/report.ts'
import { EntrySender } from '../send/sender.ts'
import { type Flags, httpAccess } from '../service-access.ts'

/** Somewhat less than the 15 minutes that `logs` shows. */
const PAST_MS = 870_000
/** No request of the shop takes longer, so no entry is in the future. */
const REQUEST_MS = 5_000
/** The payment provider of the shop fails in this part of the past, and in this part of each five minutes. */
const OUTAGE = { start: 0.45, end: 0.55, liveMs: 300_000 } as const
const RETRY_FOR_MS = 30_000
const ENTRIES_MAX = 100_000
/** How often live entries are sent. */
const TICK_MS = 200

export function define(command: Command, context: Context): void {
  const options = command
    .option('--entries <count>', 'about how many, over the last 15 minutes', integer(0, ENTRIES_MAX), 400)
    .option('--rate <count>', 'then go on with as many a second until Ctrl-C', integer(1, 1_000))
  withExamples(
    withConnections(options, 'api'),
    ['demo', 'entries of three services with a burst of errors'],
    ['demo --rate 20', 'then 20 a second'],
  ).action((given: DemoOptions) => sendDemo(given, context))
}

interface DemoOptions extends Flags {
  readonly entries: number
  readonly rate?: number
}

async function sendDemo(options: DemoOptions, context: Context): Promise<void> {
  const { nowMs, random, stdout, stderr } = context
  const api = await httpAccess('api', options, context)
  const interrupted = context.abortOnInterrupt()
  const startedAtMs = nowMs()
  const report = new SendReport(stderr)
  const sender = new EntrySender({ api, retryForMs: RETRY_FOR_MS, interrupted, nowMs }, report)
  const signal = AbortSignal.any([interrupted, sender.failed])
  let count = 0
  const sendRequest = async (atMs: number, isInOutage: boolean): Promise<void> => {
    for (const entry of shopRequest(atMs - REQUEST_MS, isInOutage, random)) {
      count += 1
      await sender.add({ entry: JSON.stringify(entry), first: count, last: count, origin: `entry ${count}` })
    }
  }
  const isOutage = (part: number): boolean => OUTAGE.start <= part && part < OUTAGE.end
  try {
    while (count < options.entries && !signal.aborted) {
      const part = count / options.entries
      await sendRequest(startedAtMs - Math.round(PAST_MS * (1 - part)), isOutage(part))
    }
    for (let due = count; options.rate !== undefined && !signal.aborted;) {
      due += (options.rate * TICK_MS) / 1_000
      while (count < due && !signal.aborted)
        await sendRequest(nowMs(), isOutage((nowMs() % OUTAGE.liveMs) / OUTAGE.liveMs))
      await processClock.sleep(TICK_MS, signal)
    }
    await sender.end()
  } finally {
    report.end()
  }
  await stdout.write(`${report.summary(nowMs() - startedAtMs)}\n`)
  await stderr.write(`To see them: ${SLUICE} logs, ${SLUICE} logs level:error, or ${SLUICE} open\n`)
  if (interrupted.aborted) context.exitCode = INTERRUPTED_EXIT_CODE
  else if (report.rejected > 0) context.exitCode = 1
}
