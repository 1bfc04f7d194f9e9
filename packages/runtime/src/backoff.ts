/** How long to wait before each retry of an operation that failed for a transient reason. */
export interface Backoff {
  readonly baseMs: number
  /** The longest wait. */
  readonly maxMs: number
}

/**
 * The wait after `attempt` failed attempts (1 or more). It doubles from `baseMs` up to `maxMs`. A random part of up to half
 * is subtracted, so that callers that failed together do not retry together.
 *
 * @param random 0 ≤ random < 1
 */
export function backoffMs(attempt: number, { baseMs, maxMs }: Backoff, random: number): number {
  const full = Math.min(maxMs, baseMs * 2 ** Math.min(attempt - 1, 30))
  return Math.round(full * (1 - random / 2))
}
