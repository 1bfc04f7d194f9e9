import type { IncomingHttpHeaders } from 'node:http'
import { Problem } from '../problems.ts'

/** Visible ASCII. Node joins a header that comes twice by a comma and a blank, so that two are no valid one. */
export const IDEMPOTENCY_KEY = /^[!-~]{1,255}$/

/** The request's idempotency key, if it has one. @throws Problem `invalid_idempotency_key` */
export function readIdempotencyKey(headers: IncomingHttpHeaders): string | undefined {
  const key = headers['idempotency-key']
  if (key === undefined || (typeof key === 'string' && IDEMPOTENCY_KEY.test(key))) return key
  throw new Problem(
    'invalid_idempotency_key',
    'An Idempotency-Key is 1 to 255 visible ASCII characters, sent once.',
  )
}
