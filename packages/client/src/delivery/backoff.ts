/** The longest first wait. It doubles with each failure. */
const BASE_MS = 500
/** A server that is back is noticed within this time. */
const DELAY_MS_MAX = 30_000
/** A longer `Retry-After` is followed by another request after this time. */
const RETRY_AFTER_MS_MAX = 3_600_000

/**
 * The wait after a failure: random, so that clients that failed together do not retry together ("full jitter"), and at least what the
 * response asks for.
 *
 * @param failures 1 or more
 * @param random 0 ≤ random < 1
 */
export function delayMs(failures: number, retryAfterMs: number | undefined, random: number): number {
  const jitterMs = random * Math.min(DELAY_MS_MAX, BASE_MS * 2 ** Math.min(failures - 1, 30))
  return Math.round(Math.max(jitterMs, Math.min(retryAfterMs ?? 0, RETRY_AFTER_MS_MAX)))
}

/** One number, or several: a header that was sent twice arrives as a list. */
const SECONDS = /^\s*(\d{1,9})\s*(,|$)/
/** `Date.parse` reads almost any text as some date. All forms of HTTP dates begin with the day of the week, and have a time. */
const HTTP_DATE = /^\s*[A-Z][a-z]+,? .*\d\d:\d\d:\d\d/

/** Parses `Retry-After`: seconds, or a date (RFC 9110). */
export function parseRetryAfterMs(text: string | null, wallMs: number): number | undefined {
  if (text === null) return undefined
  const [, seconds] = SECONDS.exec(text) ?? []
  if (seconds !== undefined) return Number(seconds) * 1_000
  const dateMs = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - wallMs)
}
