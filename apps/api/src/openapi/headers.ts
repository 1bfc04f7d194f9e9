import { limits } from '@sluice/schema'
import { apiSettings } from '../config.ts'
import { IDEMPOTENCY_KEY } from '../idempotency/idempotency-key.ts'
import { contentEncodings } from '../intake/content-encoding.ts'
import { policyHeader, resolveRateLimit, stateHeader } from '../rate-limits/rate-limit.ts'
import { SANE_REQUEST_ID } from '../request-id.ts'
import type { JsonObject } from './schemas.ts'

/** What the examples show: an id as clients make them. */
export const exampleRequestId = '3f0f9d1c-1a5d-4a55-9f3e-6d0a7b1c2d3e'
export const exampleIdempotencyKey = '0b7b9a64-4a0c-4a53-9d0c-6f0f6d5f9f51'

const windowMinutes = apiSettings.IDEMPOTENCY_WINDOW_SECONDS.default / 60

const exampleLimit = resolveRateLimit({ entriesPerSecond: 1_000 }, { entriesPerSecond: 0, bytesPerSecond: 0 })
if (exampleLimit === undefined) throw new Error('the example of a limit is none')

/** What a request may say besides its Authorization and its Content-Type, which OpenAPI has other places for. */
export const requestHeaders: readonly JsonObject[] = [
  {
    name: 'Content-Encoding',
    in: 'header',
    description:
      `How the body is compressed: one of them, not a list. The limit of ${limits.bodyBytesMax} bytes holds for the ` +
      'body as it is sent, and again once it is decoded.',
    schema: { type: 'string', enum: contentEncodings, default: 'identity' },
    example: 'zstd',
  },
  {
    name: 'Idempotency-Key',
    in: 'header',
    description:
      'Makes it safe to send the request again: the same key with the same body is stored once and gets the first ' +
      `answer again, for ${windowMinutes} minutes unless set otherwise. Make a new one for each body, a random UUID.`,
    schema: { type: 'string', pattern: IDEMPOTENCY_KEY.source },
    example: exampleIdempotencyKey,
  },
  {
    name: 'X-Request-Id',
    in: 'header',
    description: 'Comes back with the answer. An id of another form is not refused, but replaced.',
    schema: { type: 'string', pattern: SANE_REQUEST_ID.source },
    example: exampleRequestId,
  },
  {
    name: 'Expect',
    in: 'header',
    description: 'The body of a request that is refused before it is read need not be sent.',
    schema: { type: 'string', enum: ['100-continue'] },
    example: '100-continue',
  },
]

/** Every header of an answer that says more than how its body is framed. */
export const responseHeaders = {
  'X-Request-Id': {
    description: "The caller's id, or a new one: to be quoted when asking what happened.",
    required: true,
    schema: { type: 'string', pattern: SANE_REQUEST_ID.source },
    example: exampleRequestId,
  },
  'WWW-Authenticate': {
    description: 'How to authenticate.',
    required: true,
    schema: { const: 'Bearer' },
    example: 'Bearer',
  },
  Allow: {
    description: 'The method that is allowed.',
    required: true,
    schema: { const: 'POST' },
    example: 'POST',
  },
  'Retry-After': {
    description: 'How long to wait before the request is sent again, in seconds.',
    schema: { type: 'integer', minimum: 1 },
    example: 3,
  },
  'Idempotency-Replayed': {
    description: 'There when the request was taken before, and this is the first answer again.',
    schema: { const: 'true' },
    example: 'true',
  },
  'RateLimit-Policy': {
    description:
      "The project's limits (draft-ietf-httpapi-ratelimit-headers): `q` entries or bytes in each `w` seconds; " +
      '`sluice-burst` at once. Not there where the project has none.',
    schema: { type: 'string' },
    example: policyHeader(exampleLimit),
  },
  RateLimit: {
    description: 'What is left of each limit (`r`), as far as the process knows.',
    schema: { type: 'string' },
    example: stateHeader(exampleLimit, { entries: 1_950, bytes: 0 }),
  },
  'Accept-Encoding': {
    description: 'The encodings that are supported, where another one was sent.',
    schema: { type: 'string' },
    example: 'gzip, deflate, br, zstd',
  },
  Connection: {
    description: '`close` where the body was refused unread: send the next request on another connection.',
    schema: { type: 'string' },
    example: 'close',
  },
} as const satisfies Record<string, JsonObject>

export type ResponseHeader = keyof typeof responseHeaders

/** An answer's `headers`: references to those of the document. */
export function headerRefs(names: readonly ResponseHeader[]): JsonObject {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}
