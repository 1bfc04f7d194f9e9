import { problemBody } from '@sluice/access'
import { limits } from '@sluice/schema'
import { STATUS_CODES } from 'node:http'
import apiPackage from '../../package.json' with { type: 'json' }
import { apiSettings } from '../config.ts'
import { logsPaths, REQUEST_ID_PATTERN } from '../http-contract.ts'
import { IDEMPOTENCY_KEY, KEY_IS_BODY } from '../idempotency/idempotency.ts'
import { contentEncodings } from '../intake/content-encoding.ts'
import { Problem, type ProblemCode, problems } from '../problems.ts'
import { OTLP_PROTOBUF, rpcCode } from '../protocols/otlp/otlp.ts'
import { type JsonObject, schemaRef, schemas } from './schemas.ts'

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
const bodyExamples = {
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

/** A request for a shell, as Markdown. */
const curlExample = (path: string): string => `\`\`\`sh
curl "$SLUICE_API_URL${path}" -H "Authorization: Bearer $SLUICE_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '${JSON.stringify(minimal)}'
\`\`\``

/** The response to OTLP logs with a rejected record. */
const otlpAnswer = {
  partialSuccess: {
    rejectedLogRecords: '1',
    errorMessage:
      '1 of 2 records were rejected (wrong_type 1). Record 1: an element of logRecords must be an object.',
  },
}

const text: JsonObject = { type: 'string' }
const id: JsonObject = { ...text, pattern: REQUEST_ID_PATTERN.source }

const header = (schema: JsonObject, meaning: string) => ({ description: meaning, schema })

/** The headers of a request, except Authorization and Content-Type: OpenAPI describes these elsewhere. */
const requestHeaders = {
  'Content-Encoding': header(
    { ...text, enum: contentEncodings },
    `The compression of the body: one encoding, not a list. ${limits.bodyBytesMax} bytes are the limit as it is sent and decoded.`,
  ),
  'Idempotency-Key': header(
    { ...text, pattern: IDEMPOTENCY_KEY.source },
    'Makes retries safe: a request with the same key and the same body is stored once, and a retry gets the first answer again. ' +
      `Keys are remembered for ${apiSettings.IDEMPOTENCY_WINDOW_SECONDS.default / 60} minutes by default. Use a new random UUID for each body.`,
  ),
  'Sluice-Idempotency': header(
    { const: KEY_IS_BODY },
    'Makes the body the idempotency key, for clients that can only send constant headers. Do not send it together with ' +
      '`Idempotency-Key`, and only if two different requests never have the same body, because their entries have timestamps.',
  ),
  'X-Request-Id': header(id, 'Returned with the response. An id in another form is replaced.'),
  Expect: header({ const: '100-continue' }, 'Omits the body of a request that is rejected.'),
}

/** The headers of responses, except those that only frame the body. */
const responseHeaders = {
  'X-Request-Id': header(id, "The caller's id or a new one, for questions about the request."),
  'WWW-Authenticate': header({ const: 'Bearer' }, 'How to authenticate.'),
  Allow: header({ const: 'POST' }, 'The method that is allowed.'),
  'Retry-After': header({ type: 'integer', minimum: 1 }, 'How long to wait before a retry, in seconds.'),
  'Idempotency-Replayed': header({ const: 'true' }, 'Present if this is the first response again.'),
  'RateLimit-Policy': header(
    text,
    "The project's limits (draft-ietf-httpapi-ratelimit-headers): `q` entries or bytes per `w` seconds, and at most " +
      '`sluice-burst` at once. Absent if the project has no limit.',
  ),
  RateLimit: header(text, 'What is left of each limit (`r`), as far as this process knows.'),
  'Accept-Encoding': header(text, 'Present if the request used another encoding.'),
  Connection: header(text, '`close` if the body was not read: use a new connection.'),
} as const

type ResponseHeader = keyof typeof responseHeaders

const headers = (...names: ResponseHeader[]): JsonObject =>
  Object.fromEntries(['X-Request-Id' as const, ...names].map((name) => [name, responseHeaders[name]]))

const rateLimit = ['RateLimit-Policy', 'RateLimit'] as const

/** What the problems of a status have besides the headers of all problems, and advice for the client. */
const particulars: Readonly<Record<number, readonly [name: ResponseHeader, advice?: string]>> = {
  401: ['WWW-Authenticate', 'The response does not distinguish a missing key from an invalid one.'],
  405: ['Allow', 'The response to every method except `POST`.'],
  415: ['Accept-Encoding'],
  429: ['Retry-After', 'Wait for the time in `Retry-After`, then retry.'],
  503: [
    'Retry-After',
    'Retry after the time in `Retry-After`, and with the same `Idempotency-Key`: after `queue_unavailable` the ' +
      'entries may have been stored.',
  ],
}

function problem(status: number, codes: readonly ProblemCode[], names: readonly ResponseHeader[]) {
  const [name, advice] = particulars[status] ?? []
  const list = codes.map((code) => `- \`${code}\`: ${problems[code].title}`).join('\n')
  return {
    description: [STATUS_CODES[status], list, advice].filter((part) => part !== undefined).join('\n\n'),
    headers: headers(...names, ...(name === undefined ? [] : [name])),
    content: {
      'application/problem+json': {
        schema: {
          allOf: [
            schemaRef('Problem'),
            { type: 'object', properties: { status: { const: status }, code: { enum: codes } } },
          ],
        },
        example: codes.map(
          (code) => JSON.parse(problemBody(new Problem(code), 'a-request-id')) as unknown,
        )[0],
      },
    },
  }
}

/** Every problem of requests with logs, by status. */
function logsProblems(): JsonObject {
  const codes = (Object.keys(problems) as ProblemCode[]).filter((code) => code !== 'not_ready')
  const byStatus = Map.groupBy(codes, (code) => problems[code].status)
  return Object.fromEntries(
    Array.from(byStatus, ([status, ofStatus]) => {
      const { content, ...described } = problem(status, ofStatus, [...rateLimit, 'Connection'])
      const protobuf = {
        schema: schemaRef('RpcStatus'),
        example: { code: rpcCode(status), message: `${ofStatus[0]}: …` },
      }
      return [status, { ...described, content: { ...content, [OTLP_PROTOBUF]: protobuf } }]
    }),
  )
}

/** @param path one of `logsPaths` */
function logsOperation(path: string): JsonObject {
  const accepted = headers(...rateLimit, 'Idempotency-Replayed')
  const otlpAccepted = { schema: schemaRef('OtlpAccepted'), example: otlpAnswer }
  return {
    // `/v1/logs` is postV1Logs.
    operationId: `post${path.replaceAll(/\/(\w)/g, (_, letter: string) => letter.toUpperCase())}`,
    tags: ['logs'],
    summary: 'Send an entry or a batch of entries',
    description: path === logsPaths[0] ? curlExample(path) : `The same as \`${logsPaths[0]}\`.`,
    parameters: Object.entries(requestHeaders).map(([name, described]) => ({
      in: 'header',
      name,
      ...described,
    })),
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: {
            anyOf: [schemaRef('Entry'), schemaRef('Batch'), schemaRef('Entries'), schemaRef('OtlpLogs')],
          },
          examples: bodyExamples['application/json'],
        },
        'application/x-ndjson': {
          schema: {
            type: 'string',
            description:
              'One `Entry` per line; blank lines are skipped. A line that is not valid JSON is a rejected entry. ' +
              'The response is that of a batch.',
          },
          examples: bodyExamples['application/x-ndjson'],
        },
        [OTLP_PROTOBUF]: {
          schema: {
            type: 'string',
            contentMediaType: OTLP_PROTOBUF,
            description: 'OTLP logs: an ExportLogsServiceRequest in Protocol Buffers.',
          },
        },
      },
    },
    responses: {
      200: {
        description:
          'Accepted OTLP logs: the records are on disk in the queue and will be stored exactly once.',
        headers: accepted,
        // The JSON form of the message stands for its bytes.
        content: { 'application/json': otlpAccepted, [OTLP_PROTOBUF]: otlpAccepted },
      },
      202: {
        description: 'Accepted: the entries are on disk in the queue and will be stored exactly once.',
        headers: accepted,
        content: {
          'application/json': {
            schema: { oneOf: [schemaRef('EntryAccepted'), schemaRef('BatchAccepted')] },
          },
        },
      },
      ...logsProblems(),
    },
  }
}

const health = (operationId: string, summary: string, problemResponses: JsonObject = {}): JsonObject => ({
  operationId,
  tags: ['health'],
  summary,
  security: [],
  responses: {
    200: {
      description: 'Yes.',
      headers: headers(),
      content: { 'application/json': { schema: schemaRef('Health'), example: { status: 'ok' } } },
    },
    ...problemResponses,
  },
})

const livezOperation = health('isAlive', 'Whether the process answers')
const readyzOperation = health('isReady', 'Whether the process can accept entries', {
  503: problem(503, ['not_ready'], []),
})

const description = `Accepts log entries and stores each accepted entry exactly once.

A **202**, or a 200 to OTLP logs, means that the entries are on disk in the queue and will be stored in the database. Every other response is a
problem document with a stable \`code\`.

Keep the API key on servers: no response has CORS headers, so browsers cannot use the API from a web page.

Characters are Unicode code points. Nothing is truncated or converted: an entry that exceeds a limit is rejected, except by the APIs of shippers and OTLP.

The APIs that shippers already have (Elasticsearch, Loki, Splunk, Datadog) are described in \`docs/sources\`.`

/** The OpenAPI 3.1 document. */
export const openapiDocument = {
  openapi: '3.1.1',
  info: {
    title: 'Sluice',
    version: apiPackage.version,
    summary: 'Log ingestion that stores every accepted entry exactly once.',
    description,
    license: { name: 'MIT', identifier: 'MIT' },
  },
  servers: [{ url: '/' }],
  tags: [
    { name: 'logs', description: 'Send entries.' },
    { name: 'health', description: 'Liveness and readiness of the process.' },
  ],
  security: [{ apiKey: [] }],
  components: {
    securitySchemes: {
      apiKey: {
        type: 'http',
        scheme: 'bearer',
        bearerFormat: 'slk_…',
        description:
          "A project's API key with the scope `ingest`. It is checked before the body is read. A key that has only the " +
          'scope `read` is rejected with 403.',
      },
    },
    schemas,
  },
  paths: {
    ...Object.fromEntries(logsPaths.map((path) => [path, { post: logsOperation(path) }])),
    '/livez': { get: livezOperation },
    '/readyz': { get: readyzOperation },
  },
}
