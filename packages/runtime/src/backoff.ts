/** How long to wait before each further try of something that failed for a passing reason. */
export interface Backoff {
  readonly baseMs: number
  /** The longest wait. */
  readonly maxMs: number
}

/**
 * The wait before try `attempt + 1`, after `attempt` tries (1 or more) have failed: doubles from `baseMs` up to
 * `maxMs`, and a random half of it is taken off, so that those who failed together do not come back together.
 *
 * @param random 0 ≤ random < 1
 */
export function backoffMs(attempt: number, { baseMs, maxMs }: Backoff, random: number): number {
  const full = Math.min(maxMs, baseMs * 2 ** Math.min(attempt - 1, 30))
  return Math.round(full * (1 - random / 2))
}
