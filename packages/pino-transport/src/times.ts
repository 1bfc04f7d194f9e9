/** What the API accepts, and the loggers that write a space instead of the T. The day of the month is checked apart. */
const DATE_TIME =
  /^(\d{4}-\d\d-\d\d)[Tt ]((?:[01]\d|2[0-3]):[0-5]\d(?::(?:[0-5]\d|60)(?:[.,]\d{1,9})?)?(?:[Zz]|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)$/
/** 19 digits are the nanoseconds of the year 2261. */
const EPOCH = /^(\d{9,19})(?:\.(\d{1,9}))?\d*$/
/** Smaller numbers are durations or counters. As seconds, this is in March 1973. */
const EPOCH_SECONDS_MIN = 100_000_000
/** The end of the last year that the API accepts. */
const EPOCH_SECONDS_MAX = Date.UTC(2262, 0, 1) / 1_000

/** The time of a line as ISO 8601. Undefined if it is of another form. */
export function readTime(value: unknown): string | undefined {
  if (typeof value === 'number') return readMilliseconds(value) ?? readEpoch(String(value))
  return typeof value === 'string' ? (readDateTime(value) ?? readEpoch(value)) : undefined
}

/** The default of pino. */
function readMilliseconds(value: number): string | undefined {
  const isMilliseconds =
    Number.isInteger(value) && value >= 100_000_000_000 && value < EPOCH_SECONDS_MAX * 1_000
  return isMilliseconds ? new Date(value).toISOString() : undefined
}

function readDateTime(text: string): string | undefined {
  const [, date, time] = DATE_TIME.exec(text) ?? []
  if (date === undefined || time === undefined) return undefined
  const year = Number(date.slice(0, 4))
  // Not the years at the ends of the API's range: whether they are in it depends on the offset.
  return year > 1970 && year < 2261 && isDate(date) ? `${date}T${time}` : undefined
}

/** JavaScript reads February 30 as March 2. */
function isDate(date: string): boolean {
  const dayMs = Date.parse(`${date}T00:00:00Z`)
  return !Number.isNaN(dayMs) && new Date(dayMs).toISOString().startsWith(date)
}

/** The number of digits shows the unit: seconds, milliseconds, microseconds or nanoseconds. */
function readEpoch(text: string): string | undefined {
  const [, whole, fraction = ''] = EPOCH.exec(text) ?? []
  if (whole === undefined) return undefined
  const decimals = whole.length <= 11 ? 0 : whole.length <= 14 ? 3 : whole.length <= 17 ? 6 : 9
  const seconds = Number(whole.slice(0, whole.length - decimals))
  if (seconds < EPOCH_SECONDS_MIN || seconds >= EPOCH_SECONDS_MAX) return undefined
  const digits = `${whole.slice(whole.length - decimals)}${fraction}`.slice(0, 9)
  const point = digits === '' ? '' : `.${digits}`
  return `${new Date(seconds * 1_000).toISOString().slice(0, 19)}${point}Z`
}
