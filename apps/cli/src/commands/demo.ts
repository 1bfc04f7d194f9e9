import { processClock } from '@sluice/runtime'
import type { Command } from 'commander'
import { type Context, INTERRUPTED_EXIT_CODE } from '../context.ts'
import { isOutage, pastOfShop, shopRequest } from '../demo/shop-traffic.ts'
import { integer, SLUICE, withConnections, withExamples } from '../options.ts'
import { SendReport } from '../send/report.ts'
import { EntrySender } from '../send/sender.ts'
import { type Flags, httpAccess } from '../service-access.ts'

/** No request of the shop takes longer, so no entry is in the future. */
const REQUEST_MS = 5_000
/** The payment provider of the shop fails in a part of it. */
const LIVE_MS = 300_000
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

/** Entries of the past, then live ones, if there is a rate. */
async function* demoEntries(
  { entries, rate = 0 }: DemoOptions,
  { nowMs, random }: Context,
  signal: AbortSignal,
): AsyncGenerator<object> {
  yield* pastOfShop(nowMs() - REQUEST_MS, entries, random)
  if (rate === 0) return
  for (let due = 0; !signal.aborted;) {
    for (due += (rate * TICK_MS) / 1_000; due > 0;) {
      const part = (nowMs() % LIVE_MS) / LIVE_MS
      const request = shopRequest(nowMs() - REQUEST_MS, isOutage(part), random)
      due -= request.length
      yield* request
    }
    await processClock.sleep(TICK_MS, signal)
  }
}

async function sendDemo(options: DemoOptions, context: Context): Promise<void> {
  const { nowMs, stdout, stderr } = context
  const api = await httpAccess('api', options, context)
  const interrupted = context.abortOnInterrupt()
  const startedAtMs = nowMs()
  const report = new SendReport(stderr)
  const sender = new EntrySender({ api, retryForMs: RETRY_FOR_MS, interrupted, nowMs }, report)
  const signal = AbortSignal.any([interrupted, sender.failed])
  let line = 0
  try {
    for await (const entry of demoEntries(options, context, signal)) {
      if (signal.aborted) break
      line += 1
      await sender.add({ entry: JSON.stringify(entry), first: line, last: line, origin: `entry ${line}` })
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
