import type { ProcessReport } from '@sluice/ops'
import { escapeControls, type Paint } from '../terminal.ts'
import type { QueueStatus, Rates, ServerStatus, Status } from './status.ts'

/** What is cut off is in the JSON. */
const PROCESSES_SHOWN_MAX = 20
/** The labels of the lines, and the blanks behind them. */
const LABEL_WIDTH = 14
/** At a rate that a few seconds show, times that are further away mean nothing. */
const HEADROOM_SHOWN_MAX_S = 86_400
const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB'] as const

export interface ScreenOptions {
  /** The width of a line, in characters. */
  readonly columns: number
  readonly paint: Paint
  /** For how long the rates are measured before they are known. */
  readonly intervalS: number
}

/** The lines of the screen, none of them longer than `columns`. */
export function screenLines(status: Status, { columns, paint, intervalS }: ScreenOptions): string[] {
  const { queue, lag, deadLetters, servers, processes, shards, errors } = status
  const line = (label: string, text: string): string[] =>
    wrap(text, columns - LABEL_WIDTH).map(
      (part, index) => paint('dim', (index === 0 ? label : '').padEnd(LABEL_WIDTH)) + part,
    )
  return [
    ...line('Rates', ratesText(queue, intervalS)),
    ...line('Backlog', queue === undefined ? UNKNOWN : backlogText(queue)),
    ...line('Oldest chunk', queue === undefined ? UNKNOWN : ageText(queue)),
    ...line('Lag', processes === undefined ? UNKNOWN : lagText(lag)),
    ...line(
      'Dead letters',
      deadLetters === undefined ? UNKNOWN : `${count(deadLetters.total)}, ${count(deadLetters.today)} today`,
    ),
    ...(servers.length === 0
      ? line('Redis', UNKNOWN)
      : servers.flatMap((each) => line('Redis', memoryText(each)))),
    '',
    ...processLines(processes, columns, paint),
    ...(shards.length === 0 ? [] : ['', ...shardLines(shards, columns, paint)]),
    ...(errors.length === 0 ? [] : ['', ...errors.flatMap((error) => errorLines(error, columns, paint))]),
  ]
}

const UNKNOWN = 'unknown'

function ratesText(queue: QueueStatus | undefined, intervalS: number): string {
  if (queue === undefined) return UNKNOWN
  if (queue.rates === undefined) return `measured for ${duration(intervalS)} …`
  const { added, inserted, deadLettered, intervalS: measuredS } = queue.rates
  const parts = [`${rate(added)} entries/s added`, `${rate(inserted)}/s stored`]
  if (deadLettered > 0) parts.push(`${rate(deadLettered)}/s dead-lettered`)
  return `${parts.join(', ')} (over ${measuredS.toFixed(1)} s)`
}

function backlogText({ rows, waiting, delayed, inHand, failed }: QueueStatus): string {
  const chunks = [`${count(waiting)} waiting`, `${count(inHand)} in hand`]
  if (delayed > 0) chunks.push(`${count(delayed)} delayed`)
  if (failed > 0) chunks.push(`${count(failed)} failed`)
  return `${count(rows)} rows; chunks: ${chunks.join(', ')}`
}

function ageText({ waiting, inHand, oldestAgeS }: QueueStatus): string {
  return waiting + inHand === 0 ? 'none waits or is in hand' : `${duration(oldestAgeS)} old`
}

function lagText(lag: Status['lag']): string {
  if (lag === undefined) return 'no chunk was stored in the last minute'
  return `mean ${duration(lag.meanS)}, max ${duration(lag.maxS)} (${count(lag.chunks)} chunks in the last minute)`
}

function memoryText({ server, usedBytes, limitBytes, headroomS }: ServerStatus): string {
  const percent = Math.round((100 * usedBytes) / limitBytes)
  const growth =
    headroomS === undefined
      ? 'not growing'
      : headroomS > HEADROOM_SHOWN_MAX_S
        ? 'not full within a day'
        : `full in ${duration(headroomS)} at this rate`
  return `${escapeControls(server)}: ${bytes(usedBytes)} of ${bytes(limitBytes)} (${percent} %), ${growth}`
}

function processLines(processes: Status['processes'], columns: number, paint: Paint): string[] {
  if (processes === undefined) return [`${'Processes'.padEnd(LABEL_WIDTH)}${UNKNOWN}`]
  if (processes.length === 0) return [paint('red', 'No process has reported itself in the last 15 s.')]
  // Those that need attention first. The order of the others does not change.
  const ordered = processes.toSorted(
    (a, b) => Number(b.notReady !== undefined) - Number(a.notReady !== undefined),
  )
  const shown = ordered.slice(0, PROCESSES_SHOWN_MAX)
  const [heading = '', ...rows] = aligned(
    [['PROCESS', 'HOST', 'PID', 'VERSION', 'UPTIME', 'IN HAND', 'STATE'], ...shown.map(processCells)],
    columns,
  )
  const more = processes.length - shown.length
  return [
    paint('dim', heading),
    ...rows.flatMap((row, index) => withReason(row, shown[index]?.notReady, columns, paint)),
    ...(more > 0 ? [`and ${count(more)} more; --json has all`] : []),
  ]
}

function withReason(row: string, reason: string | undefined, columns: number, paint: Paint): string[] {
  if (reason === undefined) return [row]
  const lines = wrap(escapeControls(reason), columns - REASON_INDENT.length)
  return [paint('red', row), ...lines.map((text) => REASON_INDENT + text)]
}

const REASON_INDENT = '  '

function processCells({ role, host, pid, version, uptimeS, chunksHeld, notReady }: ProcessReport): string[] {
  const state = notReady === undefined ? 'ready' : 'not ready'
  const held = chunksHeld === undefined ? '-' : count(chunksHeld)
  return [
    role,
    cut(host, HOST_WIDTH_MAX),
    `${pid}`,
    cut(version, VERSION_WIDTH_MAX),
    duration(uptimeS),
    held,
    state,
  ]
}

/** With these, a line of a process fits into 80 columns. */
const HOST_WIDTH_MAX = 20
const VERSION_WIDTH_MAX = 10

function shardLines(shards: Status['shards'], columns: number, paint: Paint): string[] {
  const headings = [
    'SHARD',
    'ROWS',
    'WAITING',
    'IN HAND',
    'DELAYED',
    'FAILED',
    'OLDEST',
    'ADDED/S',
    'STORED/S',
  ]
  const [heading = '', ...rows] = aligned(
    [
      headings,
      ...shards.map(({ shard, rows: queued, waiting, inHand, delayed, failed, oldestAgeS, rates }) => [
        `${shard}`,
        count(queued),
        count(waiting),
        count(inHand),
        count(delayed),
        count(failed),
        waiting + inHand === 0 ? '-' : duration(oldestAgeS),
        ratePart(rates, ({ added }) => added),
        ratePart(rates, ({ inserted }) => inserted),
      ]),
    ],
    columns,
  )
  return [paint('dim', heading), ...rows]
}

function ratePart(rates: Rates | undefined, of: (known: Rates) => number): string {
  return rates === undefined ? '-' : rate(of(rates))
}

function errorLines(error: string, columns: number, paint: Paint): string[] {
  return wrap(`Error: ${escapeControls(error)}`, columns).map((text) => paint('red', text))
}

/** Rows of cells as aligned lines. */
function aligned(rows: readonly (readonly string[])[], columns: number): string[] {
  const safe = rows.map((row) => row.map(escapeControls))
  const widths = (safe[0] ?? []).map((_, column) => Math.max(...safe.map((row) => row[column]?.length ?? 0)))
  return safe.map((row) =>
    cut(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
      columns,
    ),
  )
}

/** The text in lines, between words where possible. */
function wrap(text: string, columns: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`
    if (longer.length <= columns) {
      line = longer
      continue
    }
    if (line !== '') lines.push(line)
    line = cut(word, columns)
  }
  return [...lines, line]
}

function cut(text: string, columns: number): string {
  return text.length <= columns ? text : `${text.slice(0, Math.max(0, columns - 1))}…`
}

function count(value: number): string {
  return value.toLocaleString('en-US')
}

/** With one digit after the point below ten: a few entries per minute are not nothing. */
function rate(perSecond: number): string {
  return perSecond > 0 && perSecond < 10 ? perSecond.toFixed(1) : count(Math.round(perSecond))
}

function bytes(value: number): string {
  let [scaled, unit] = [value, 0]
  while (scaled >= 1_000 && unit < BYTE_UNITS.length - 1) [scaled, unit] = [scaled / 1_000, unit + 1]
  return `${scaled >= 100 || unit === 0 ? Math.round(scaled) : scaled.toFixed(1)} ${BYTE_UNITS[unit] ?? ''}`
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
