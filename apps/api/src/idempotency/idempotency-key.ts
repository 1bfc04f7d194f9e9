import { Problem } from '../problems.ts'

/** The header's name, as Node gives it. */
export const idempotencyKeyHeader = 'idempotency-key'

/** Visible ASCII. Node joins a header that comes twice by a comma and a blank, so that two are no valid one. */
const VALID_KEY = /^[!-~]{1,255}$/

/** @throws Problem `invalid_idempotency_key` */
export function checkIdempotencyKey(header: string | readonly string[]): string {
  if (typeof header === 'string' && VALID_KEY.test(header)) return header
  throw new Problem(
    'invalid_idempotency_key',
    'An Idempotency-Key is 1 to 255 visible ASCII characters, sent once.',
  )
}
