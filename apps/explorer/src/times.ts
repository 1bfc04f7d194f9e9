/** A half-open range, in milliseconds since 1970. */
export interface TimeRange {
  readonly fromMs: number
  readonly untilMs: number
}

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS
const unitsMs: Readonly<Record<string, number>> = {
  s: SECOND_MS,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
}

export const presets: readonly (readonly [from: string, label: string])[] = [
  ['-5m', 'Last 5 minutes'],
  ['-15m', 'Last 15 minutes'],
  ['-1h', 'Last hour'],
  ['-6h', 'Last 6 hours'],
  ['-24h', 'Last 24 hours'],
  ['-7d', 'Last 7 days'],
  ['-30d', 'Last 30 days'],
]

export const browserZone = (): string => new Intl.DateTimeFormat().resolvedOptions().timeZone

const formats = new Map<string, Intl.DateTimeFormat | undefined>()
function formatOf(zone: string): Intl.DateTimeFormat | undefined {
  if (!formats.has(zone)) {
    let format: Intl.DateTimeFormat | undefined
    try {
      format = new Intl.DateTimeFormat('en-US', {
        ...(zone === '' ? {} : { timeZone: zone }),
        calendar: 'iso8601',
        hourCycle: 'h23',
        year: 'numeric',
        month: '2-digit',
        day: '2-digit',
        hour: '2-digit',
        minute: '2-digit',
        second: '2-digit',
      })
    } catch {
      // No zone has this name.
    }
    formats.set(zone, format)
  }
  return formats.get(zone)
}
export const isZone = (zone: string): boolean => formatOf(zone) !== undefined

const OFFSETS_MAX = 5000
const offsets = new Map<string, number>()
/** What a zone's clocks are ahead of UTC. Clocks change only at quarters of an hour, for which the answers are kept. */
export function offsetMs(atMs: number, zone: string): number {
  const format = formatOf(zone)
  if (zone === 'UTC' || format === undefined) return 0
  const quarterMs = Math.floor(atMs / (15 * MINUTE_MS)) * 15 * MINUTE_MS
  const key = `${zone}/${quarterMs}`
  let offset = offsets.get(key)
  if (offset === undefined) {
    const parts: Record<string, number> = {}
    for (const { type, value } of format.formatToParts(quarterMs)) parts[type] = Number(value)
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
    offset = Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(quarterMs / 1000) * 1000
    if (offsets.size >= OFFSETS_MAX) offsets.clear()
    offsets.set(key, offset)
  }
  return offset
}

/** The time at which the clocks of a zone show this, given as if it were UTC. */
export function atWallTime(wallMs: number, zone: string): number {
  const guess = wallMs - offsetMs(wallMs, zone)
  return wallMs - offsetMs(guess, zone)
}

/**
 * The time that a text names: `now`, `-15m`, ISO 8601, or a date and time, or a time of today, in the zone of the page. Undefined if it
 * names none.
 */
export function parseTime(text: string, nowMs: number, zone: string): number | undefined {
  const trimmed = text.trim()
  if (trimmed === 'now') return nowMs
  const [, amount, unit = ''] = /^-(\d{1,6})([smhdw])$/.exec(trimmed) ?? []
  if (amount !== undefined) return nowMs - Number(amount) * (unitsMs[unit] ?? 0)
  const [, date, hour = '0', minute = '0', second = '0', fraction = '', offset] =
    /^(?:(\d{4}-\d{2}-\d{2})[ T]?)?(?:(\d{1,2}):(\d{2})(?::(\d{2})(\.\d{1,9})?)?)?(Z|[+-]\d{2}:?\d{2})?$/i.exec(
      trimmed,
    ) ?? []
  if (trimmed === '' || (date === undefined && !trimmed.includes(':'))) return undefined
  const day = date ?? new Date(nowMs + offsetMs(nowMs, zone)).toISOString().slice(0, 10)
  const wallMs =
    Date.parse(`${day}T00:00:00Z`) +
    Number(hour) * HOUR_MS +
    Number(minute) * MINUTE_MS +
    Number(second) * SECOND_MS +
    Math.floor(Number(`0${fraction}`) * 1000)
  if (!Number.isFinite(wallMs) || Number(hour) > 24 || Number(minute) > 59 || Number(second) > 59)
    return undefined
  if (offset === undefined) return atWallTime(wallMs, zone)
  if (offset.toUpperCase() === 'Z') return wallMs
  const [, sign, hours, minutes] = /^([+-])(\d{2}):?(\d{2})$/.exec(offset) ?? []
  return wallMs - (sign === '-' ? -1 : 1) * (Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS)
}

/** The range that two texts name, or what is wrong with them. */
export function parseRange(from: string, until: string, nowMs: number, zone: string): TimeRange | string {
  const fromMs = parseTime(from, nowMs, zone)
  const untilMs = parseTime(until, nowMs, zone)
  if (fromMs === undefined) return `“${from}” is not a time. Try -15m, 14:30 or 2026-11-24 14:30.`
  if (untilMs === undefined) return `“${until}” is not a time. Try now, 14:30 or 2026-11-24 14:30.`
  return fromMs < untilMs ? { fromMs, untilMs } : 'The range ends before it begins.'
}

export const isRelative = (text: string): boolean => text === 'now' || text.startsWith('-')
export const isoOf = (ms: number): string => new Date(ms).toISOString()

/** A time on the clocks of a zone: the date, the time to the second, and the fraction as it is in the text. */
export function wallTime(
  time: string | number,
  zone: string,
): { date: string; time: string; fraction: string } {
  const ms = typeof time === 'number' ? time : Date.parse(time)
  if (!Number.isFinite(ms)) return { date: '', time: String(time), fraction: '' }
  const wall = new Date(ms + offsetMs(ms, zone)).toISOString()
  const fraction = (typeof time === 'string' ? /\.(\d+)/.exec(time)?.[1] : undefined) ?? wall.slice(20, 23)
  return { date: wall.slice(0, 10), time: wall.slice(11, 19), fraction }
}

/** `UTC`, `UTC+1`, `UTC−3:30`. */
export function offsetLabel(atMs: number, zone: string): string {
  const minutes = Math.round(offsetMs(atMs, zone) / MINUTE_MS)
  const hours = Math.floor(Math.abs(minutes) / 60)
  const rest = Math.abs(minutes) % 60
  if (minutes === 0) return 'UTC'
  return `UTC${minutes < 0 ? '−' : '+'}${hours}${rest === 0 ? '' : `:${String(rest).padStart(2, '0')}`}`
}

/** The range in words: a preset's name, or its ends, with dates where they are needed. */
export function rangeLabel(from: string, until: string, range: TimeRange, zone: string): string {
  const preset = until === 'now' ? presets.find(([start]) => start === from)?.[1] : undefined
  return preset ?? (isRelative(from) && until === 'now' ? `Last ${from.slice(1)}` : rangeEnds(range, zone))
}

export function rangeEnds({ fromMs, untilMs }: TimeRange, zone: string): string {
  const from = wallTime(fromMs, zone)
  const until = wallTime(untilMs, zone)
  const short = ({ time, fraction }: typeof from): string =>
    untilMs - fromMs < MINUTE_MS
      ? `${time}.${fraction}`
      : untilMs - fromMs < HOUR_MS
        ? time
        : time.slice(0, 5)
  if (from.date === until.date) return `${short(from)} – ${short(until)}`
  return `${from.date.slice(5)} ${short(from)} – ${until.date.slice(5)} ${short(until)}`
}

/** 950 ms, 4.2 s, 3 min, 2 h. */
export function duration(ms: number): string {
  if (ms < SECOND_MS) return `${Math.round(ms)} ms`
  if (ms < MINUTE_MS) return `${(ms / SECOND_MS).toFixed(ms < 10 * SECOND_MS ? 1 : 0)} s`
  if (ms < 2 * HOUR_MS) return `${Math.round(ms / MINUTE_MS)} min`
  return ms < 3 * DAY_MS ? `${Math.round(ms / HOUR_MS)} h` : `${Math.round(ms / DAY_MS)} d`
}
