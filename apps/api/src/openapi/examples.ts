import { problemBody } from '@sluice/access'
import { Problem, type ProblemCode } from '../problems.ts'

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

const logRecord = {
  timeUnixNano: '1795214581123456000',
  severityNumber: 9,
  body: { stringValue: 'Checked out' },
  attributes: [{ key: 'cart', value: { intValue: '42' } }],
}
const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'checkout' } }] }
const otlp = { resourceLogs: [{ resource, scopeLogs: [{ logRecords: [logRecord] }] }] }

/** Bodies by media type and name. The API accepts each of them without changes. */
export const bodyExamples = {
  'application/json': {
    minimal: { summary: 'An entry with the required fields', value: minimal },
    entry: { summary: 'An entry with all fields', value: full },
    batch: { summary: 'A batch', value: { logs: [minimal, full] } },
    otlp: { summary: 'OTLP logs', value: otlp },
  },
  'application/x-ndjson': {
    lines: {
      summary: 'A batch with one entry per line',
      value: `${JSON.stringify(minimal)}\n${JSON.stringify(full)}\n`,
    },
  },
} as const

/** Responses to accepted requests. */
export const acceptedExamples = {
  entry: {
    summary: 'Response to an entry',
    value: { id: '019aa2d4-5f3b-7000-8c4e-5b1f0a9d3e72', status: 'accepted', timestamp: full.timestamp },
  },
  batch: { summary: 'Response to a batch', value: { success: true, accepted: 2, rejected: 0 } },
} as const

/** The response to OTLP logs with a rejected record. */
export const otlpAcceptedExample = {
  partialSuccess: {
    rejectedLogRecords: '1',
    errorMessage:
      '1 of 2 records were rejected (wrong_type 1). Record 1: an element of logRecords must be an object.',
  },
} as const

/** A problem document, with the detail that most problems of its code have. */
export function problemExample(code: ProblemCode): unknown {
  return JSON.parse(problemBody(new Problem(code), '3f0f9d1c-1a5d-4a55-9f3e-6d0a7b1c2d3e'))
}

/** A request for a shell, as Markdown. */
export const curlExample = (path: string): string => `\`\`\`sh
curl "$SLUICE_API_URL${path}" -H "Authorization: Bearer $SLUICE_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '${JSON.stringify(minimal)}'
\`\`\``
