import { limits } from '@sluice/schema'
import { missingScopeDetail } from '../authentication/authenticator.ts'
import { Problem, problemBody, problems, type FieldError, type ProblemCode } from '../problems.ts'
import { rateLimitedDetail } from '../rate-limits/rate-limit.ts'
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

const otlp = {
  resourceLogs: [
    {
      resource: { attributes: [{ key: 'service.name', value: { stringValue: 'checkout' } }] },
      scopeLogs: [
        {
          logRecords: [
            {
              timeUnixNano: '1795214581123456000',
              severityNumber: 9,
              body: { stringValue: 'Checked out' },
              attributes: [{ key: 'cart', value: { intValue: '42' } }],
            },
          ],
        },
      ],
    },
  ],
}

const lines = `${JSON.stringify(minimal)}\n${JSON.stringify(full)}\n`

/** Bodies by media type and name. The API accepts each of them without changes. */
export const bodyExamples = {
  'application/json': {
    minimal: { summary: 'An entry with the required fields', value: minimal },
    entry: { summary: 'An entry with all fields', value: full },
    batch: { summary: 'A batch', value: { logs: [minimal, full] } },
    array: { summary: 'A batch as a plain array', value: [minimal, full] },
    otlp: { summary: 'OTLP logs', value: otlp },
  },
  'application/x-ndjson': {
    lines: { summary: 'A batch with one entry per line', value: lines },
  },
} as const

/** Answers to accepted requests. */
export const acceptedExamples = {
  entry: {
    summary: 'Answer to an entry',
    value: {
      id: '019aa2d4-5f3b-7000-8c4e-5b1f0a9d3e72',
      status: 'accepted',
      timestamp: full.timestamp,
    },
  },
  batch: { summary: 'Answer to a batch', value: { success: true, accepted: 2, rejected: 0 } },
  partlyRejected: {
    summary: 'Answer to a batch with a rejected entry',
    value: {
      success: true,
      accepted: 1,
      rejected: 1,
      errors: [{ index: 1, path: '', code: 'missing', message: 'message is required' }],
    },
  },
} as const

/** Answers to accepted OTLP logs. */
export const otlpAcceptedExamples = {
  accepted: { summary: 'Answer to OTLP logs', value: {} },
  partlyRejected: {
    summary: 'Answer to OTLP logs with a rejected record',
    value: {
      partialSuccess: {
        rejectedLogRecords: '1',
        errorMessage: `1 of 2 records were rejected (too_long 1). Record 1: /message must have at most ${limits.messageCharactersMax} characters.`,
      },
    },
  },
} as const

interface Example {
  readonly detail: string
  readonly errors?: readonly FieldError[]
}

const exampleRate = { entries: 100, bytes: 0 }

/** Examples for the codes whose detail depends on the request. */
const variableExamples: Readonly<Partial<Record<ProblemCode, Example>>> = {
  invalid_json: {
    detail: `The text ends too early at line 1, column 16: expected "," or "}".`,
  },
  invalid_protobuf: {
    detail: 'The body is not an ExportLogsServiceRequest: a number is incomplete, at byte 1.',
  },
  invalid_encoding: { detail: 'The body cannot be decoded: incorrect header check.' },
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
    detail: `A request may have at most ${limits.entriesPerRequestMax} entries; this one has ${limits.entriesPerRequestMax + 1}.`,
  },
  forbidden: { detail: missingScopeDetail('ingest', ['read']) },
  project_not_found: { detail: 'The project demo is deleted or disabled.' },
  rate_limited: { detail: rateLimitedDetail({ perSecond: exampleRate, burst: exampleRate }, 1) },
  not_ready: { detail: 'the connection to Redis is reconnecting.' },
}

/** Problem documents by code, in the form that the API returns. */
export function problemExamples(
  codes: readonly ProblemCode[],
): Record<string, { summary: string; value: unknown }> {
  return Object.fromEntries(
    codes.map((code) => {
      const problem: { title: string; detail?: string } = problems[code]
      const { title } = problem
      const { detail, errors = [] } = variableExamples[code] ?? { detail: problem.detail ?? `${title}.` }
      const body = problemBody(new Problem(code, detail, { errors }), exampleRequestId)
      return [code, { summary: title, value: JSON.parse(body) as unknown }]
    }),
  )
}

/** Requests for a shell, as Markdown. */
export function curlExamples(path: string): string {
  const request = `curl "$SLUICE_API_URL${path}" -H "Authorization: Bearer $SLUICE_API_KEY"`
  return `Set \`SLUICE_API_URL\` and \`SLUICE_API_KEY\` in the environment.

One entry:

\`\`\`sh
${request} \\
  -H "Content-Type: application/json" \\
  -d '${JSON.stringify(minimal)}'
\`\`\`

A batch that can be retried safely:

\`\`\`sh
${request} \\
  -H "Content-Type: application/json" \\
  -H "Idempotency-Key: ${exampleIdempotencyKey}" \\
  -d '${JSON.stringify({ logs: [minimal, full] })}'
\`\`\`

Compressed lines:

\`\`\`sh
printf '%s\\n' '${JSON.stringify(minimal)}' '${JSON.stringify({ ...minimal, level: 'debug' })}' | gzip |
  ${request} \\
    -H "Content-Type: application/x-ndjson" \\
    -H "Content-Encoding: gzip" \\
    --data-binary @-
\`\`\``
}
