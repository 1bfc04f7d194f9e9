import { limits } from '@sluice/schema'
import { Problem, problemBody, problems, type FieldError, type ProblemCode } from '../problems.ts'
import { exampleIdempotencyKey, exampleRequestId } from './headers.ts'

const minimal = { level: 'info', message: 'Checked out' }

const full = {
  level: 'error',
  message: 'Payment was declined',
  timestamp: '2026-11-20T22:43:01.123456+01:00',
  service: 'checkout',
  environment: 'production',
  source: 'server',
  url: 'https://shop.example/cart/42?step=pay',
  pathname: '/cart/42',
  stack: 'DeclinedError: insufficient funds\n    at pay (/srv/checkout/pay.ts:17:9)',
  metadata: { cart: 42, total: { amount: 99.9, currency: 'EUR' }, tags: ['card', 'retry'] },
}

const lines = `${JSON.stringify(minimal)}\n${JSON.stringify(full)}\n`

/** Bodies by their media type and name; each is taken as it is. */
export const bodyExamples = {
  'application/json': {
    minimal: { summary: 'An entry with what it must have', value: minimal },
    entry: { summary: 'An entry with all fields', value: full },
    batch: { summary: 'A batch', value: { logs: [minimal, full] } },
    array: { summary: 'A batch as a bare array', value: [minimal, full] },
  },
  'application/x-ndjson': {
    lines: { summary: 'A batch of an entry a line', value: lines },
  },
} as const

/** Answers to what is taken. */
export const acceptedExamples = {
  entry: {
    summary: 'To an entry',
    value: {
      id: '019aa2d4-5f3b-7000-8c4e-5b1f0a9d3e72',
      status: 'accepted',
      timestamp: full.timestamp,
    },
  },
  batch: { summary: 'To a batch', value: { success: true, accepted: 2, rejected: 0 } },
  partlyRejected: {
    summary: 'To a batch of which an entry was rejected',
    value: {
      success: true,
      accepted: 1,
      rejected: 1,
      errors: [{ index: 1, path: '', code: 'missing', message: 'message is required' }],
    },
  },
} as const

interface Refusal {
  readonly detail: string
  readonly errors?: readonly FieldError[]
}

/** What the API says with these codes. A code that is not here is shown with its title. */
const refusals: Readonly<Partial<Record<ProblemCode, Refusal>>> = {
  invalid_json: {
    detail: `Expected ',' or '}' after property value in JSON at position 15 (line 1 column 16).`,
  },
  invalid_utf8: { detail: 'The body must be UTF-8.' },
  invalid_encoding: { detail: 'The body cannot be decoded: incorrect header check.' },
  empty_body: { detail: 'Send an entry or a batch as JSON.' },
  invalid_body: { detail: '"logs" must be an array of entries.' },
  invalid_entry: {
    detail: '/level: must be one of log, debug, info, success, warn, error.',
    errors: [
      {
        path: '/level',
        code: 'not_allowed',
        message: 'must be one of log, debug, info, success, warn, error',
      },
    ],
  },
  too_many_entries: {
    detail: `A request may have at most ${limits.entriesPerBatchMax} entries; this one has ${limits.entriesPerBatchMax + 1}.`,
  },
  invalid_idempotency_key: { detail: 'An Idempotency-Key is 1 to 255 visible ASCII characters, sent once.' },
  bad_request: { detail: 'The request is not valid HTTP.' },
  unauthorized: { detail: 'Send the header "Authorization: Bearer <API_KEY>" with a valid key.' },
  forbidden: { detail: 'The key needs the scope "ingest".' },
  not_found: { detail: 'Logs are sent to /v1/logs.' },
  project_not_found: { detail: 'The project demo is gone or disabled.' },
  method_not_allowed: { detail: 'Logs are sent with POST.' },
  request_timeout: { detail: 'The request did not arrive in time.' },
  body_too_large: {
    detail: `A body may have at most ${limits.bodyBytesMax} bytes. Send fewer entries a request.`,
  },
  unsupported_media_type: { detail: 'Send application/json or application/x-ndjson.' },
  unsupported_encoding: { detail: 'Use one of gzip, deflate, br and zstd, or no encoding.' },
  idempotency_key_reused: { detail: 'This key came with another body before. Use a new key for each body.' },
  rate_limited: { detail: 'The project may send 100 entries a second. Try again in 1 s.' },
  too_many_failed_attempts: { detail: 'Too many unknown keys came from your address. Wait.' },
  headers_too_large: { detail: 'Send fewer or shorter headers.' },
  internal_error: { detail: 'Try again with backoff. If it goes on, report the request id.' },
  overloaded: { detail: 'More arrives than can be stored at present. Send this again later.' },
  queue_unavailable: { detail: 'The queue did not answer in time. Try again.' },
  not_ready: { detail: 'the connection to Redis is reconnecting.' },
  shutting_down: { detail: 'Try again; another process will answer.' },
}

/** Problem documents as the API writes them, by their codes. */
export function problemExamples(
  codes: readonly ProblemCode[],
): Record<string, { summary: string; value: unknown }> {
  return Object.fromEntries(
    codes.map((code) => {
      const { title } = problems[code]
      const { detail, errors = [] } = refusals[code] ?? { detail: `${title}.` }
      const body = problemBody(new Problem(code, detail, { errors }), exampleRequestId)
      return [code, { summary: title, value: JSON.parse(body) as unknown }]
    }),
  )
}

/** Requests to paste into a shell, as Markdown. */
export function curlExamples(path: string): string {
  const request = `curl "$SLUICE_URL${path}" -H "Authorization: Bearer $SLUICE_KEY"`
  return `With the address and the key in the environment, as \`SLUICE_URL\` and \`SLUICE_KEY\`:

An entry:

\`\`\`sh
${request} \\
  -H "Content-Type: application/json" \\
  -d '${JSON.stringify(minimal)}'
\`\`\`

A batch that may be sent again:

\`\`\`sh
${request} \\
  -H "Content-Type: application/json" \\
  -H "Idempotency-Key: ${exampleIdempotencyKey}" \\
  -d '${JSON.stringify({ logs: [minimal, full] })}'
\`\`\`

Lines, compressed:

\`\`\`sh
printf '%s\\n' '${JSON.stringify(minimal)}' '${JSON.stringify({ ...minimal, level: 'debug' })}' | gzip |
  ${request} \\
    -H "Content-Type: application/x-ndjson" \\
    -H "Content-Encoding: gzip" \\
    --data-binary @-
\`\`\``
}
