import { limits } from '@sluice/schema'
import { STATUS_CODES } from 'node:http'
import { apiSettings } from '../config.ts'
import { logsPaths, REQUEST_ID_PATTERN } from '../http-contract.ts'
import { IDEMPOTENCY_KEY, KEY_IS_BODY } from '../idempotency/idempotency.ts'
import { contentEncodings } from '../intake/content-encoding.ts'
import { problems, type ProblemCode } from '../problems.ts'
import { OTLP_PROTOBUF, rpcCode } from '../protocols/otlp/otlp.ts'
import { policyHeader, type RateLimit, stateHeader } from '../rate-limits/rate-limit.ts'
import {
  acceptedExamples,
  bodyExamples,
  curlExample,
  otlpAcceptedExample,
  problemExample,
} from './examples.ts'
import { type JsonObject, schemaRef } from './schemas.ts'

/** An operation of the OpenAPI document, in the form of a schema of Fastify. */
export type Operation = JsonObject

const requestId: JsonObject = {
  type: 'string',
  pattern: REQUEST_ID_PATTERN.source,
  examples: ['3f0f9d1c-1a5d-4a55-9f3e-6d0a7b1c2d3e'],
}

/** The headers of a request, except Authorization and Content-Type: OpenAPI describes these elsewhere. */
const requestHeaders: JsonObject = {
  'Content-Encoding': {
    type: 'string',
    enum: contentEncodings,
    description:
      `The compression of the body: a single encoding, not a list. The limit of ${limits.bodyBytesMax} bytes applies to ` +
      'the body as it is sent and to the decoded body.',
    examples: ['zstd'],
  },
  'Idempotency-Key': {
    type: 'string',
    pattern: IDEMPOTENCY_KEY.source,
    description:
      'Makes retries safe: a request with the same key and the same body is stored once, and a retry gets the first answer again. ' +
      `Keys are remembered for ${apiSettings.IDEMPOTENCY_WINDOW_SECONDS.default / 60} minutes by default. Use a new random UUID for each body.`,
    examples: ['0b7b9a64-4a0c-4a53-9d0c-6f0f6d5f9f51'],
  },
  'Sluice-Idempotency': {
    const: KEY_IS_BODY,
    description:
      'Makes the body the idempotency key, for clients that can only send constant headers. Do not send it together with ' +
      '`Idempotency-Key`, and only if two different requests never have the same body, because their entries have timestamps.',
    examples: [KEY_IS_BODY],
  },
  'X-Request-Id': {
    ...requestId,
    description: 'Returned with the response. An id in another form does not cause an error: it is replaced.',
  },
  Expect: {
    type: 'string',
    enum: ['100-continue'],
    description: 'Lets the client omit the body of a request that is rejected before the body is read.',
    examples: ['100-continue'],
  },
}

const exampleLimit: RateLimit = {
  perSecond: { entries: 1_000, bytes: 0 },
  burst: { entries: 2_000, bytes: 0 },
}

/** The headers of responses, except those that only frame the body. */
const responseHeaders = {
  'X-Request-Id': {
    ...requestId,
    description: "The caller's id or a new one. Quote it in questions about the request.",
  },
  'WWW-Authenticate': { const: 'Bearer', description: 'How to authenticate.', examples: ['Bearer'] },
  Allow: { const: 'POST', description: 'The method that is allowed.', examples: ['POST'] },
  'Retry-After': {
    type: 'integer',
    minimum: 1,
    description: 'How long to wait before a retry, in seconds.',
    examples: [3],
  },
  'Idempotency-Replayed': {
    const: 'true',
    description: 'Present if the request had been accepted before: this is the first response again.',
    examples: ['true'],
  },
  'RateLimit-Policy': {
    type: 'string',
    description:
      "The project's limits (draft-ietf-httpapi-ratelimit-headers): `q` entries or bytes per `w` seconds, and at most " +
      '`sluice-burst` at once. Absent if the project has no limit.',
    examples: [policyHeader(exampleLimit)],
  },
  RateLimit: {
    type: 'string',
    description: 'The remainder of each limit (`r`), as far as this API process knows.',
    examples: [stateHeader(exampleLimit, { entries: 1_950, bytes: 0 })],
  },
  'Accept-Encoding': {
    type: 'string',
    description: 'The supported encodings. Present if the request used another one.',
    examples: ['gzip, deflate, br, zstd'],
  },
  Connection: {
    type: 'string',
    description:
      '`close` if the request was rejected before its body was read: use a new connection for the next request.',
    examples: ['close'],
  },
} as const satisfies Record<string, JsonObject>

type ResponseHeader = keyof typeof responseHeaders

const headers = (...names: ResponseHeader[]): JsonObject =>
  Object.fromEntries(['X-Request-Id' as const, ...names].map((name) => [name, responseHeaders[name]]))

const rateLimit = ['RateLimit-Policy', 'RateLimit'] as const

/** What the problems of a status have besides the headers of all problems, and advice for the client. */
const particulars: Readonly<Record<number, readonly [header: ResponseHeader, advice?: string]>> = {
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
  const [header, advice] = particulars[status] ?? []
  const list = codes.map((code) => `- \`${code}\`: ${problems[code].title}`).join('\n')
  return {
    description: [STATUS_CODES[status], list, advice].filter((part) => part !== undefined).join('\n\n'),
    headers: headers(...names, ...(header === undefined ? [] : [header])),
    content: {
      'application/problem+json': {
        schema: {
          allOf: [
            schemaRef('Problem'),
            { type: 'object', properties: { status: { const: status }, code: { enum: codes } } },
          ],
        },
        example: codes.map(problemExample)[0],
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
export function logsOperation(path: string): Operation {
  const accepted = headers(...rateLimit, 'Idempotency-Replayed')
  const otlpAccepted = { schema: schemaRef('OtlpAccepted'), example: otlpAcceptedExample }
  return {
    // `/v1/logs` is postV1Logs.
    operationId: `post${path.replaceAll(/\/(\w)/g, (_, letter: string) => letter.toUpperCase())}`,
    tags: ['logs'],
    summary: 'Send an entry or a batch of entries',
    description: path === logsPaths[0] ? curlExample(path) : `The same as \`${logsPaths[0]}\`.`,
    headers: { type: 'object', properties: requestHeaders },
    body: {
      content: {
        'application/json': {
          schema: {
            anyOf: [schemaRef('Entry'), schemaRef('Batch'), schemaRef('Entries'), schemaRef('OtlpLogs')],
            'x-examples': bodyExamples['application/json'],
          },
        },
        'application/x-ndjson': {
          schema: {
            type: 'string',
            description:
              'One `Entry` per line; blank lines are skipped. A line that is not valid JSON is a rejected entry. ' +
              'The response is that of a batch.',
            'x-examples': bodyExamples['application/x-ndjson'],
          },
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
    response: {
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
            examples: acceptedExamples,
          },
        },
      },
      ...logsProblems(),
    },
  }
}

const health = (operationId: string, summary: string, problemResponses: JsonObject = {}): Operation => ({
  operationId,
  tags: ['health'],
  summary,
  security: [],
  response: {
    200: {
      description: 'Yes.',
      headers: headers(),
      content: { 'application/json': { schema: schemaRef('Health'), example: { status: 'ok' } } },
    },
    ...problemResponses,
  },
})

export const livezOperation = health('isAlive', 'Whether the process answers')
export const readyzOperation = health('isReady', 'Whether the process can accept entries', {
  503: problem(503, ['not_ready'], []),
})

interface ShipperApi {
  readonly summary: string
  /** In docs/sources. */
  readonly page: string
  readonly type: string
  readonly schema: JsonObject
  readonly example: unknown
  readonly status: number
}

const text: JsonObject = { type: 'string' }
const object: JsonObject = { type: 'object' }

/** The APIs that shippers already have, by path. Their own documentation describes their bodies. */
const shipperApis: Readonly<Record<string, ShipperApi>> = {
  '/elasticsearch/_bulk': {
    summary: 'Bulk API of Elasticsearch',
    page: 'elasticsearch',
    type: 'application/x-ndjson',
    schema: text,
    example: '{"create":{"_index":"shop"}}\n{"message":"paid","log.level":"info"}\n',
    status: 200,
  },
  '/loki/api/v1/push': {
    summary: 'Push API of Loki, in JSON or in Protocol Buffers with snappy',
    page: 'loki',
    type: 'application/json',
    schema: { ...object, required: ['streams'], properties: { streams: { type: 'array', items: object } } },
    example: {
      streams: [{ stream: { app: 'shop', level: 'info' }, values: [['1763632800000000000', 'paid']] }],
    },
    status: 204,
  },
  '/services/collector/event': {
    summary: 'HTTP Event Collector of Splunk',
    page: 'splunk-datadog',
    type: 'application/json',
    schema: object,
    example: { time: 1_763_632_800, event: 'paid' },
    status: 200,
  },
  '/services/collector/raw': {
    summary: 'HTTP Event Collector of Splunk, for lines of text',
    page: 'splunk-datadog',
    type: 'text/plain',
    schema: text,
    example: 'paid',
    status: 200,
  },
  '/api/v2/logs': {
    summary: 'Logs API v2 of Datadog. The key is in the header DD-API-KEY',
    page: 'splunk-datadog',
    type: 'application/json',
    schema: { anyOf: [object, { type: 'array', items: object }] },
    example: [{ message: 'paid', status: 'info', service: 'shop', ddtags: 'env:prod' }],
    status: 202,
  },
}

/** The operation of a shipper's API. Undefined for its other paths. */
export function shipperOperation(path: string): Operation | undefined {
  const api = shipperApis[path]
  if (api === undefined) return undefined
  const { summary, page, type, schema, example, status } = api
  const content = status === 204 ? { type: 'null' } : { content: { 'application/json': { schema: object } } }
  return {
    tags: ['shippers'],
    summary,
    description:
      `At most ${limits.bodyBytesMax} bytes and ${limits.recordsPerRequestMax} records. ` +
      `\`docs/sources/${page}.md\` has the mapping to entries, and the responses.`,
    body: { content: { [type]: { schema: { ...schema, examples: [example] } } } },
    response: {
      [status]: { description: 'The valid records are stored.', headers: headers(...rateLimit), ...content },
      default: {
        description: 'A rejection, in the form and with the statuses of the API.',
        headers: headers(...rateLimit),
        type: 'null',
      },
    },
  }
}
