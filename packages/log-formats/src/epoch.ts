/** A decimal number without a sign or an exponent. 19 digits are the nanoseconds of the year 2261. */
const DECIMAL = /^(\d{1,19})(?:\.(\d{1,30}))?$/

/** Smaller numbers are no seconds of a date after March 1973. They are durations or counters. */
const EPOCH_SECONDS_MIN = 100_000_000
/** The end of the year 2261, which is the last of the contract. */
const EPOCH_SECONDS_MAX = Date.UTC(2262, 0, 1) / 1_000

/**
 * The time of a number since 1970 as ISO 8601 in UTC. The number of its digits shows the unit: with up to 11 digits it
 * has seconds, up to 14 milliseconds, up to 17 microseconds, else nanoseconds. Each unit has the range of the years 1973
 * to 2261 for itself. All digits are kept, up to nine of the fraction.
 *
 * @param text a decimal number
 */
export function timeOfEpoch(text: string): string | undefined {
  const [, whole, fraction = ''] = DECIMAL.exec(text) ?? []
  if (whole === undefined) return undefined
  const decimals = whole.length <= 11 ? 0 : whole.length <= 14 ? 3 : whole.length <= 17 ? 6 : 9
  const seconds = Number(whole.slice(0, whole.length - decimals))
  if (seconds < EPOCH_SECONDS_MIN || seconds >= EPOCH_SECONDS_MAX) return undefined
  const digits = `${whole.slice(whole.length - decimals)}${fraction}`.slice(0, 9)
  const point = digits === '' ? '' : `.${digits}`
  return `${new Date(seconds * 1_000).toISOString().slice(0, 19)}${point}Z`
}
