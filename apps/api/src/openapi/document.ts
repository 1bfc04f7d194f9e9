import { problemBody } from '@sluice/access'
import { entryErrorCodes, entrySchema, limits } from '@sluice/schema'
import { STATUS_CODES } from 'node:http'
import apiPackage from '../../package.json' with { type: 'json' }
import { apiSettings } from '../config.ts'
import { logsPaths, REQUEST_ID_PATTERN } from '../http-contract.ts'
import { IDEMPOTENCY_KEY, KEY_IS_BODY } from '../idempotency/idempotency.ts'
import { contentEncodings } from '../intake/content-encoding.ts'
import { Problem, type ProblemCode, problems } from '../problems.ts'
import { OTLP_PROTOBUF, rpcCode } from '../protocols/otlp/otlp.ts'

type JsonObject = Readonly<Record<string, unknown>>

const schemaRef = (name: string): JsonObject => ({ $ref: `#/components/schemas/${name}` })

const count = (description: string): JsonObject => ({
  type: 'integer',
  minimum: 0,
  maximum: limits.entriesPerRequestMax,
  description,
})

const entries: JsonObject = {
  type: 'array',
  maxItems: limits.entriesPerRequestMax,
  items: schemaRef('Entry'),
}

const entryErrors = Object.entries(entryErrorCodes).map(([code, meaning]) => `- \`${code}\`: ${meaning}`)

/** The schemas of the document by name. The schema of an entry also validates entries. */
const schemas = {
  // Without `$id`: inside the document, it would become the base URI for references.
  Entry: { ...entrySchema, $id: undefined },
  Batch: {
    type: 'object',
    description: 'A batch of entries. An invalid entry is rejected without affecting the others.',
    required: ['logs'],
    properties: { logs: entries },
  },
  Entries: { ...entries, description: 'A batch as a plain array, the format of log shippers.' },
  EntryAccepted: {
    type: 'object',
    description: 'The answer to a single entry.',
    required: ['id', 'status', 'timestamp'],
    properties: {
      id: { type: 'string', format: 'uuid', description: 'Identifies the entry (UUIDv7).' },
      status: { const: 'accepted' },
      timestamp: { type: 'string', description: 'The timestamp as it was sent, or the time of receipt.' },
    },
  },
  BatchAccepted: {
    type: 'object',
    description:
      'The answer to a batch. `accepted` and `rejected` add up to the number of entries sent. ' +
      'The status is 202 even if all entries are rejected.',
    required: ['success', 'accepted', 'rejected'],
    properties: {
      success: { const: true },
      accepted: count('Number of entries that will be stored.'),
      rejected: count('Number of entries that will not be stored. `errors` contains the reasons.'),
      errors: {
        type: 'array',
        minItems: 1,
        maxItems: limits.entriesPerRequestMax * limits.errorsPerEntryMax,
        description: 'Present only if entries were rejected.',
        items: { allOf: [schemaRef('FieldError'), { type: 'object', required: ['index'] }] },
      },
    },
  },
  Problem: {
    type: 'object',
    description:
      'A problem document (RFC 9457). No entry of the request was stored. The exception is the code ' +
      '`queue_unavailable`: then the entries may or may not be stored.',
    required: ['type', 'title', 'status', 'detail', 'code', 'requestId'],
    properties: {
      type: { type: 'string', format: 'uri', description: 'A URI for the problem, equivalent to `code`.' },
      title: { type: 'string', description: 'The meaning of `code`.' },
      status: { type: 'integer', description: 'The HTTP status of the answer.' },
      detail: { type: 'string', description: 'What is wrong with this request, for humans.' },
      code: { enum: Object.keys(problems), description: 'Stable. Programs should evaluate this field.' },
      requestId: { type: 'string', description: 'The same as in the header `X-Request-Id`.' },
      errors: {
        type: 'array',
        minItems: 1,
        maxItems: limits.errorsPerEntryMax,
        description: 'The invalid fields, if the problem concerns fields.',
        items: schemaRef('FieldError'),
      },
    },
  },
  FieldError: {
    type: 'object',
    description: 'What is wrong with one field of an entry.',
    required: ['path', 'code', 'message'],
    properties: {
      index: {
        type: 'integer',
        minimum: 0,
        maximum: limits.entriesPerRequestMax - 1,
        description:
          "The entry's position in its batch, starting at 0. Blank lines of NDJSON are not counted.",
      },
      path: {
        type: 'string',
        format: 'json-pointer',
        description: 'The field, as a JSON Pointer (RFC 6901) into the entry. Empty for the entry itself.',
      },
      code: { enum: Object.keys(entryErrorCodes), description: `Stable.\n${entryErrors.join('\n')}` },
      message: { type: 'string', description: 'A human-readable explanation.' },
    },
  },
  OtlpLogs: {
    type: 'object',
    description:
      'OTLP logs: an ExportLogsServiceRequest of OpenTelemetry. An object with `level`, `message` or `logs` is not OTLP. An invalid ' +
      'record is rejected without affecting the others.',
    required: ['resourceLogs'],
    properties: { resourceLogs: { type: ['array', 'null'], items: { type: 'object' } } },
  },
  OtlpAccepted: {
    type: 'object',
    description:
      'The answer to OTLP logs: an ExportLogsServiceResponse. It is empty if no record was rejected.',
    properties: {
      partialSuccess: {
        type: 'object',
        required: ['rejectedLogRecords', 'errorMessage'],
        properties: {
          rejectedLogRecords: { type: 'string', pattern: '^[1-9][0-9]*$', description: 'Not stored.' },
          errorMessage: { type: 'string', description: 'Why they were rejected, with examples.' },
        },
      },
    },
  },
  RpcStatus: {
    type: 'object',
    description:
      'The answer to a rejected request in Protocol Buffers: a google.rpc.Status. The message begins with the code of the problem.',
    required: ['code', 'message'],
    properties: {
      code: { type: 'integer', minimum: 1, maximum: 16, description: 'A code of gRPC.' },
      message: { type: 'string' },
    },
  },
  Health: { type: 'object', required: ['status'], properties: { status: { const: 'ok' } } },
} as const

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

/** Bodies by media type and name. The API accepts each of them without changes. */
const bodyExamples = {
  'application/json': {
    minimal: { summary: 'An entry with the required fields', value: minimal },
    entry: { summary: 'An entry with all fields', value: full },
    batch: { summary: 'A batch', value: { logs: [minimal, full] } },
  },
  'application/x-ndjson': {
    lines: {
      summary: 'A batch with one entry per line',
      value: `${JSON.stringify(minimal)}\n${JSON.stringify(full)}\n`,
    },
  },
} as const

const curlExample = `\`\`\`sh
curl "$SLUICE_API_URL${logsPaths[0]}" -H "Authorization: Bearer $SLUICE_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '${JSON.stringify(minimal)}'
\`\`\``

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
const headers = {
  'X-Request-Id': header(id, "The caller's id or a new one, for questions about the request."),
  'WWW-Authenticate': header({ const: 'Bearer' }, 'With 401: how to authenticate.'),
  Allow: header({ const: 'POST' }, 'With 405: the method that is allowed.'),
  'Retry-After': header(
    { type: 'integer', minimum: 1 },
    'With 429 and 503: the seconds to wait before a retry. Retry with the same `Idempotency-Key`: after `queue_unavailable` the entries may ' +
      'have been stored.',
  ),
  'Idempotency-Replayed': header({ const: 'true' }, 'Present if this is the first response again.'),
  'RateLimit-Policy': header(
    text,
    "The project's limits (draft-ietf-httpapi-ratelimit-headers): `q` entries or bytes per `w` seconds, and at most " +
      '`sluice-burst` at once. Absent if the project has no limit.',
  ),
  RateLimit: header(text, 'What is left of each limit (`r`), as far as this process knows.'),
  'Accept-Encoding': header(text, 'With 415, if the request used another encoding: the supported ones.'),
  Connection: header(text, '`close` if the body was not read: use a new connection.'),
} as const

function problem(status: number, codes: readonly ProblemCode[]) {
  const list = codes.map((code) => `- \`${code}\`: ${problems[code].title}`).join('\n')
  return {
    description: `${STATUS_CODES[status]}\n\n${list}`,
    headers,
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

function logsProblems(): JsonObject {
  const codes = (Object.keys(problems) as ProblemCode[]).filter((code) => code !== 'not_ready')
  const byStatus = Map.groupBy(codes, (code) => problems[code].status)
  return Object.fromEntries(
    Array.from(byStatus, ([status, ofStatus]) => {
      const { content, ...described } = problem(status, ofStatus)
      const protobuf = {
        schema: schemaRef('RpcStatus'),
        example: { code: rpcCode(status), message: `${ofStatus[0]}: …` },
      }
      return [status, { ...described, content: { ...content, [OTLP_PROTOBUF]: protobuf } }]
    }),
  )
}

function logsOperation(path: string): JsonObject {
  const otlpAccepted = { schema: schemaRef('OtlpAccepted') }
  return {
    // `/v1/logs` is postV1Logs.
    operationId: `post${path.replaceAll(/\/(\w)/g, (_, letter: string) => letter.toUpperCase())}`,
    tags: ['logs'],
    summary: 'Send an entry or a batch of entries',
    description: path === logsPaths[0] ? curlExample : `The same as \`${logsPaths[0]}\`.`,
    parameters: Array.from(Object.entries(requestHeaders), ([name, described]) => ({
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
              'The response is the same as for a batch.',
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
        headers,
        // The JSON form of the message stands for its bytes.
        content: { 'application/json': otlpAccepted, [OTLP_PROTOBUF]: otlpAccepted },
      },
      202: {
        description: 'Accepted: the entries are on disk in the queue and will be stored exactly once.',
        headers,
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
      headers,
      content: { 'application/json': { schema: schemaRef('Health'), example: { status: 'ok' } } },
    },
    ...problemResponses,
  },
})

const livezOperation = health('isAlive', 'Whether the process answers')
const readyzOperation = health('isReady', 'Whether the process can accept entries', {
  503: problem(503, ['not_ready']),
})

const description = `Accepts log entries and stores each accepted entry exactly once.

A **202**, or a 200 to OTLP logs, means that the entries are on disk in the queue and will be stored in the database. Every other response is a
problem document with a stable \`code\`.

Keep the API key on servers: no response has CORS headers, so browsers cannot use the API from a web page.

Characters are Unicode code points. Nothing is truncated or converted: an entry that exceeds a limit is rejected, except by the APIs of shippers and OTLP.

The APIs that shippers already have (Elasticsearch, Loki, Splunk, Datadog) are described in \`docs/sources\`.`

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
