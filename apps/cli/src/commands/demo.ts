import { processClock } from '@sluice/runtime'
import type { Command } from 'commander'
import { Readable } from 'node:stream'
import type { Context } from '../context.ts'
import { isOutage, pastOfShop, shopRequest } from '../demo/shop-traffic.ts'
import { integer, SLUICE, withConnections, withExamples } from '../options.ts'
import type { Flags } from '../service-access.ts'
import { sendSources } from './send.ts'

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
  ).action(async (given: DemoOptions) => {
    const open = (): Readable => Readable.from(demoLines(given, context), { objectMode: false })
    const sources = [{ name: 'the demo', service: undefined, open }]
    await sendSources(sources, { ...given, level: 'info', retryFor: RETRY_FOR_MS }, context)
    await context.stderr.write(`To see them: ${SLUICE} logs, ${SLUICE} logs level:error, or ${SLUICE} open\n`)
  })
}

interface DemoOptions extends Flags {
  readonly entries: number
  readonly rate?: number
}

/** Entries of the past, then live ones, if there is a rate. */
async function* demoLines(
  { entries, rate = 0 }: DemoOptions,
  { nowMs, random }: Context,
): AsyncGenerator<string> {
  yield* pastOfShop(nowMs() - REQUEST_MS, entries, random)
  if (rate === 0) return
  for (let due = 0; ;) {
    for (due += (rate * TICK_MS) / 1_000; due > 0;) {
      const part = (nowMs() % LIVE_MS) / LIVE_MS
      const request = shopRequest(nowMs() - REQUEST_MS, isOutage(part), random)
      due -= request.length
      yield* request
    }
    await processClock.sleep(TICK_MS)
  }
}
