import { limits } from '@sluice/schema'
import { apiSettings } from '../config.ts'
import { REQUEST_ID_PATTERN } from '../http-contract.ts'
import { IDEMPOTENCY_KEY, KEY_IS_BODY } from '../idempotency/idempotency-record.ts'
import { contentEncodings } from '../intake/content-encoding.ts'
import { policyHeader, resolveRateLimit, stateHeader } from '../rate-limits/rate-limit.ts'
import type { JsonObject } from './schemas.ts'

/** Ids in the form that clients usually send. */
export const exampleRequestId = '3f0f9d1c-1a5d-4a55-9f3e-6d0a7b1c2d3e'
export const exampleIdempotencyKey = '0b7b9a64-4a0c-4a53-9d0c-6f0f6d5f9f51'

const windowMinutes = apiSettings.IDEMPOTENCY_WINDOW_SECONDS.default / 60

const exampleLimit = resolveRateLimit({ entriesPerSecond: 1_000 }, { entriesPerSecond: 0, bytesPerSecond: 0 })
if (exampleLimit === undefined) throw new Error('the example rate limit must not be unlimited')

/** The headers of a request, except Authorization and Content-Type: OpenAPI describes these elsewhere. */
export const requestHeaders: readonly JsonObject[] = [
  {
    name: 'Content-Encoding',
    in: 'header',
    description:
      `The compression of the body: a single encoding, not a list. The limit of ${limits.bodyBytesMax} bytes applies to ` +
      'the body as it is sent and to the decoded body.',
    schema: { type: 'string', enum: contentEncodings, default: 'identity' },
    example: 'zstd',
  },
  {
    name: 'Idempotency-Key',
    in: 'header',
    description:
      'Makes retries safe: a request with the same key and the same body is stored once, and a retry gets the first ' +
      `answer again. Keys are remembered for ${windowMinutes} minutes by default. Use a new random UUID for each body.`,
    schema: { type: 'string', pattern: IDEMPOTENCY_KEY.source },
    example: exampleIdempotencyKey,
  },
  {
    name: 'Sluice-Idempotency',
    in: 'header',
    description:
      'Makes the body the idempotency key, for clients that can only send constant headers: while keys are remembered, a request ' +
      'with the same body is stored once. Do not send it together with `Idempotency-Key`, and only if two different requests never have ' +
      'the same body, because their entries have timestamps.',
    schema: { const: KEY_IS_BODY },
    example: KEY_IS_BODY,
  },
  {
    name: 'X-Request-Id',
    in: 'header',
    description: 'Returned with the answer. An id in another form does not cause an error: it is replaced.',
    schema: { type: 'string', pattern: REQUEST_ID_PATTERN.source },
    example: exampleRequestId,
  },
  {
    name: 'Expect',
    in: 'header',
    description: 'Lets the client omit the body of a request that is rejected before the body is read.',
    schema: { type: 'string', enum: ['100-continue'] },
    example: '100-continue',
  },
]

/** The headers of answers, except those that only frame the body. */
export const responseHeaders = {
  'X-Request-Id': {
    description: "The caller's id or a new one. Quote it in questions about the request.",
    required: true,
    schema: { type: 'string', pattern: REQUEST_ID_PATTERN.source },
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
    description: 'How long to wait before a retry, in seconds.',
    schema: { type: 'integer', minimum: 1 },
    example: 3,
  },
  'Idempotency-Replayed': {
    description: 'Present if the request had been accepted before: this is the first answer again.',
    schema: { const: 'true' },
    example: 'true',
  },
  'RateLimit-Policy': {
    description:
      "The project's limits (draft-ietf-httpapi-ratelimit-headers): `q` entries or bytes per `w` seconds, and at most " +
      '`sluice-burst` at once. Absent if the project has no limit.',
    schema: { type: 'string' },
    example: policyHeader(exampleLimit),
  },
  RateLimit: {
    description: 'The remainder of each limit (`r`), as far as this API process knows.',
    schema: { type: 'string' },
    example: stateHeader(exampleLimit, { entries: 1_950, bytes: 0 }),
  },
  'Accept-Encoding': {
    description: 'The supported encodings. Present if the request used another one.',
    schema: { type: 'string' },
    example: 'gzip, deflate, br, zstd',
  },
  Connection: {
    description:
      '`close` if the request was rejected before its body was read: use a new connection for the next request.',
    schema: { type: 'string' },
    example: 'close',
  },
} as const satisfies Record<string, JsonObject>

export type ResponseHeader = keyof typeof responseHeaders

/** The `headers` of an answer, as references to the components of the document. */
export function headerRefs(names: readonly ResponseHeader[]): JsonObject {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}
