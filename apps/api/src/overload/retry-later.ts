import { Problem, problems } from '../problems.ts'

/** Seconds. */
export interface RetryRange {
  readonly min: number
  readonly max: number
}

/**
 * A rejection whose `Retry-After` is random, because clients that were rejected at the same time must not all retry at the same time.
 *
 * @param random 0 ≤ random < 1
 */
export function retryLater(
  { min, max }: RetryRange,
  random: number,
  detail: string = problems.overloaded.detail,
): Problem {
  const seconds = min + Math.floor(random * (max - min + 1))
  return new Problem('overloaded', detail, { headers: { 'retry-after': String(seconds) } })
}
