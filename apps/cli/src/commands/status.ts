import { memoryTrend, type ProcessReport } from '@sluice/ops'
import { registryProblems } from '@sluice/projects'
import { processClock } from '@sluice/runtime'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { integer, withConnections, withExamples } from '../options.ts'
import { clickhouseAccess, type Flags, redisAccess } from '../service-access.ts'
import { type QueueStatus, readStatus, type Status, statusJson, statusOf } from '../status/status.ts'
import { escapeControls, formatCount as count, type Paint, painter, table } from '../terminal.ts'

export function define(command: Command, context: Context): void {
  const options = command
    .option('-w, --watch', 'refresh until Ctrl-C, which ends with exit code 0')
    .option(
      '--interval <seconds>',
      'time between the readings that rates are measured from',
      integer(1, 60),
      2,
    )
    .option('--json', 'print one JSON object; with --watch one per line and interval')
  withExamples(
    withConnections(options, 'clickhouse', 'redis'),
    ['status --watch', 'refreshed every two seconds, until Ctrl-C'],
    ['status --watch --interval 10 --json', 'for a program, every ten seconds'],
  ).action((given: StatusOptions) => showStatus(given, context))
}

interface StatusOptions extends Flags {
  watch?: true
  interval: number
  json?: true
}

async function showStatus(options: StatusOptions, context: Context): Promise<void> {
  const { watch, json, interval } = options
  const redis = await redisAccess(options, context)
  const signal = watch ? context.abortOnInterrupt() : new AbortController().signal
  const headroomS = memoryTrend(() => processClock.nowMs())
  let before: Parameters<typeof statusOf>[1]
  while (!signal.aborted) {
    const now = await readStatus(redis, () => clickhouseAccess(options, context, redis))
    if (signal.aborted) return
    const status = statusOf(now, before, headroomS, context.nowMs())
    // Without Redis there are no rates to wait for.
    const isComplete = before !== undefined || now.redis === undefined
    // A program gets no object without rates that it would have to ignore.
    if (isComplete || (watch && !json)) await print(status, options, context)
    if (isComplete && !watch) {
      if (now.errors.length > 0) context.exitCode = 1
      return
    }
    before = now
    await processClock.sleep(interval * 1_000, signal)
  }
}

const CLEAR_SCREEN = '\u001B[2J\u001B[H'

async function print(status: Status, options: StatusOptions, { stdout }: Context): Promise<void> {
  if (options.json) return stdout.write(`${statusJson(status)}\n`)
  const start = options.watch && stdout.isTerminal ? CLEAR_SCREEN : ''
  const end = options.watch && !stdout.isTerminal ? '\n' : ''
  await stdout.write(`${start}${statusText(status, painter(stdout.colours))}${end}`)
}

const UNKNOWN = 'unknown'
const LABEL_WIDTH = 14

export function statusText(status: Status, paint: Paint): string {
  const { atMs, queue, lag, deadLetters, servers, processes, registry, shards, errors } = status
  const problem = registry && registryProblems[registry]
  const line = (label: string, value = UNKNOWN): string =>
    `${paint('dim', label.padEnd(LABEL_WIDTH))}${escapeControls(value)}\n`
  return [
    `Sluice, ${new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')} UTC\n`,
    line('Rates', queue && ratesText(queue)),
    line('Backlog', queue && backlogText(queue)),
    line('Oldest chunk', queue && ageText(queue, 'none waits or is in hand', ' old')),
    line('Lag', processes && lagText(lag)),
    line('Dead letters', deadLetters && `${count(deadLetters.total)}, ${count(deadLetters.today)} today`),
    ...(servers.length === 0 ? [line('Redis')] : servers.map((server) => line('Redis', memoryText(server)))),
    problem === undefined ? '' : line('Projects', problem),
    `\n${processTable(processes, paint)}`,
    ...(shards.length === 0 ? [] : [`\n${shardTable(shards, paint)}`]),
    ...errors.map((error) => `\n${paint('red', `Error: ${escapeControls(error)}`)}\n`),
  ].join('')
}

function ratesText({ rates }: QueueStatus): string {
  if (rates === undefined) return 'known after the next refresh'
  const { added, inserted, deadLettered, intervalS } = rates
  const parts = [`${rate(added)} entries/s added`, `${rate(inserted)}/s stored`]
  if (deadLettered > 0) parts.push(`${rate(deadLettered)}/s dead-lettered`)
  return `${parts.join(', ')} (over ${intervalS.toFixed(1)} s)`
}

function backlogText({ rows, waiting, delayed, inHand, failed }: QueueStatus): string {
  const chunks = [`${count(waiting)} waiting`, `${count(inHand)} in hand`]
  if (delayed > 0) chunks.push(`${count(delayed)} delayed`)
  if (failed > 0) chunks.push(`${count(failed)} failed`)
  return `${count(rows)} rows; chunks: ${chunks.join(', ')}`
}

function ageText({ waiting, inHand, oldestAgeS }: QueueStatus, none: string, suffix = ''): string {
  return waiting + inHand === 0 ? none : `${duration(oldestAgeS)}${suffix}`
}

function lagText(lag: Status['lag']): string {
  if (lag === undefined) return 'no chunk was stored in the last minute'
  return `mean ${duration(lag.meanS)}, max ${duration(lag.maxS)} (${count(lag.chunks)} chunks in the last minute)`
}

function memoryText({ server, usedBytes, limitBytes, headroomS }: Status['servers'][number]): string {
  const percent = Math.round((100 * usedBytes) / limitBytes)
  const growth = headroomS === Infinity ? 'not growing' : `full in ${duration(headroomS)} at this rate`
  return `${server}: ${bytes(usedBytes)} of ${bytes(limitBytes)} (${percent} %), ${growth}`
}

function processTable(processes: Status['processes'], paint: Paint): string {
  if (processes === undefined) return `${'Processes'.padEnd(LABEL_WIDTH)}${UNKNOWN}\n`
  const hasWorker = processes.some(({ role, isSilent }) => role === 'worker' && !isSilent)
  const note = hasWorker
    ? ''
    : `${paint('red', 'No worker is running: none has reported itself in the last 15 s.')}\n`
  if (processes.length === 0) return note
  const headings = ['PROCESS', 'HOST', 'PID', 'VERSION', 'UPTIME', 'IN HAND', 'STATE']
  return `${table([headings, ...processes.map(processCells)], paint)}${note}`
}

function processCells(report: ProcessReport): string[] {
  const { role, host, pid, version, uptimeS, chunksHeld, notReady, isSilent, ageS } = report
  const reported = notReady === undefined ? 'ready' : `not ready: ${notReady}`
  const state = isSilent ? `has not reported for ${Math.floor(ageS)} s: frozen or dead` : reported
  return [role, host, `${pid}`, version, duration(uptimeS), known(chunksHeld, count), state]
}

function shardTable(shards: Status['shards'], paint: Paint): string {
  const headings = 'SHARD,ROWS,WAITING,IN HAND,DELAYED,FAILED,OLDEST,ADDED/S,STORED/S'.split(',')
  const cells = shards.map((queue) => [
    `${queue.shard}`,
    ...[queue.rows, queue.waiting, queue.inHand, queue.delayed, queue.failed].map(count),
    ageText(queue, '-'),
    known(queue.rates?.added, rate),
    known(queue.rates?.inserted, rate),
  ])
  return table([headings, ...cells], paint)
}

const known = (value: number | undefined, format: (value: number) => string): string =>
  value === undefined ? '-' : format(value)

/** With one digit after the point below ten: a few entries per minute are not nothing. */
function rate(perSecond: number): string {
  return perSecond > 0 && perSecond < 10 ? perSecond.toFixed(1) : count(Math.round(perSecond))
}

const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB']

function bytes(value: number): string {
  const power = Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log10(Math.max(1, value)) / 3))
  return `${Number((value / 1_000 ** power).toPrecision(3))} ${BYTE_UNITS[power]}`
}

/** For example `0.82 s`, `42 s`, `5 min 3 s`, `2 h 3 min` or `5 d 2 h`. */
function duration(seconds: number): string {
  if (seconds < 10) return `${Number(seconds.toFixed(2))} s`
  const whole = Math.floor(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3_600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  if (whole < 86_400) return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} min`
  return `${count(Math.floor(whole / 86_400))} d ${Math.floor((whole % 86_400) / 3_600)} h`
}
