import { MemoryTrend } from '@sluice/ops'
import { processClock } from '@sluice/runtime'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { type ClickHouseFlags, redisAccess, type RedisFlags, tablesAccess } from '../service-access.ts'
import { escapeJsonControls, painter } from '../terminal.ts'
import { type Reading, type ReadingSources, readStart, readStatus } from './reading.ts'
import { screenLines } from './screen.ts'
import { type Status, statusJson, statusOf } from './status.ts'

export interface StatusOptions extends RedisFlags, ClickHouseFlags {
  watch?: true
  /** Seconds. */
  interval: number
  json?: true
}

/** Clears the screen, and moves to its first line. */
const CLEAR_SCREEN = '\u001B[2J\u001B[H'
const CLEAR_LINE = '\r\u001B[2K'

/** `sluice status`. With `watch` it ends with exit code 0 when it is interrupted. */
export async function showStatus(options: StatusOptions, context: Context): Promise<void> {
  const redis = await redisAccess(options, context)
  const clickhouse = await tablesAccess(options, redis, context).catch((error: unknown) => {
    if (error instanceof CliError) return error
    throw error
  })
  const sources = { redis, clickhouse, monotonicMs: () => processClock.nowMs() }
  await (options.watch ? watch : showOnce)(sources, options, context)
}

async function showOnce(sources: ReadingSources, options: StatusOptions, context: Context): Promise<void> {
  const { stderr } = context
  const trend = new MemoryTrend(sources.monotonicMs)
  const before = await readStart(sources)
  // Without Redis there are no rates to wait for.
  if (before.redis !== undefined) {
    for (const memory of before.redis.servers) trend.headroomS(memory)
    if (stderr.isTerminal) await stderr.write(`Rates are measured for ${options.interval} s …`)
    await processClock.sleep(options.interval * 1_000)
    if (stderr.isTerminal) await stderr.write(CLEAR_LINE)
  }
  const now = await readStatus(sources)
  await print(statusOf(now, before, trend, context.nowMs()), options, context)
  if (now.errors.length > 0) context.exitCode = 1
}

async function watch(sources: ReadingSources, options: StatusOptions, context: Context): Promise<void> {
  const signal = context.abortOnInterrupt()
  const trend = new MemoryTrend(sources.monotonicMs)
  let before: Reading | undefined
  while (!signal.aborted) {
    const startedMs = sources.monotonicMs()
    const now = await readStatus(sources)
    if (signal.aborted) return
    const status = statusOf(now, before, trend, context.nowMs())
    // A program gets no object without rates that it would have to ignore.
    if (!options.json || before !== undefined) await print(status, options, context)
    before = now
    await processClock.sleep(options.interval * 1_000 - (sources.monotonicMs() - startedMs), signal)
  }
}

async function print(status: Status, options: StatusOptions, { stdout }: Context): Promise<void> {
  if (options.json) {
    await stdout.write(`${escapeJsonControls(statusJson(status))}\n`)
    return
  }
  const lines = screenLines(status, {
    columns: stdout.columns(),
    paint: painter(stdout.colours),
    intervalS: options.interval,
  })
  const title = `Sluice, ${new Date(status.atMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`
  const start = options.watch && stdout.isTerminal ? CLEAR_SCREEN : ''
  const end = options.watch && !stdout.isTerminal ? '\n' : ''
  await stdout.write(`${start}${[title, ...lines].join('\n')}\n${end}`)
}
