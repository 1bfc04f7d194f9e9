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

const text: JsonObject = { type: 'string' }
const id: JsonObject = { ...text, pattern: REQUEST_ID_PATTERN.source }
const exampleId = '3f0f9d1c-1a5d-4a55-9f3e-6d0a7b1c2d3e'

const header = (schema: JsonObject, example: unknown, description: string) => ({
  description,
  schema: { ...schema, examples: [example] },
})

/** The headers of a request, except Authorization and Content-Type: OpenAPI describes these elsewhere. */
const requestHeaders = {
  'Content-Encoding': header(
    { ...text, enum: contentEncodings },
    'zstd',
    `The compression of the body: one encoding, not a list. ${limits.bodyBytesMax} bytes are the limit as it is sent and decoded.`,
  ),
  'Idempotency-Key': header(
    { ...text, pattern: IDEMPOTENCY_KEY.source },
    exampleId,
    'Makes retries safe: a request with the same key and the same body is stored once, and a retry gets the first answer again. ' +
      `Keys are remembered for ${apiSettings.IDEMPOTENCY_WINDOW_SECONDS.default / 60} minutes by default. Use a new random UUID for each body.`,
  ),
  'Sluice-Idempotency': header(
    { const: KEY_IS_BODY },
    KEY_IS_BODY,
    'Makes the body the idempotency key, for clients that can only send constant headers. Do not send it together with ' +
      '`Idempotency-Key`, and only if two different requests never have the same body, because their entries have timestamps.',
  ),
  'X-Request-Id': header(id, exampleId, 'Returned with the response. An id in another form is replaced.'),
  Expect: header({ const: '100-continue' }, '100-continue', 'Omits the body of a request that is rejected.'),
}

const exampleLimit: RateLimit = { perSecond: { entries: 10, bytes: 0 }, burst: { entries: 20, bytes: 0 } }
const exampleState = stateHeader(exampleLimit, { entries: 19, bytes: 0 })

/** The headers of responses, except those that only frame the body. */
const responseHeaders = {
  'X-Request-Id': header(id, exampleId, "The caller's id or a new one, for questions about the request."),
  'WWW-Authenticate': header({ const: 'Bearer' }, 'Bearer', 'How to authenticate.'),
  Allow: header({ const: 'POST' }, 'POST', 'The method that is allowed.'),
  'Retry-After': header({ type: 'integer', minimum: 1 }, 3, 'How long to wait before a retry, in seconds.'),
  'Idempotency-Replayed': header({ const: 'true' }, 'true', 'Present if this is the first response again.'),
  'RateLimit-Policy': header(
    text,
    policyHeader(exampleLimit),
    "The project's limits (draft-ietf-httpapi-ratelimit-headers): `q` entries or bytes per `w` seconds, and at most " +
      '`sluice-burst` at once. Absent if the project has no limit.',
  ),
  RateLimit: header(text, exampleState, 'What is left of each limit (`r`), as far as this process knows.'),
  'Accept-Encoding': header(text, 'gzip, deflate, br, zstd', 'Present if the request used another encoding.'),
  Connection: header(text, 'close', '`close` if the body was not read: use a new connection.'),
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
export function logsOperation(path: string): JsonObject {
  const accepted = headers(...rateLimit, 'Idempotency-Replayed')
  const otlpAccepted = { schema: schemaRef('OtlpAccepted'), example: otlpAcceptedExample }
  return {
    // `/v1/logs` is postV1Logs.
    operationId: `post${path.replaceAll(/\/(\w)/g, (_, letter: string) => letter.toUpperCase())}`,
    tags: ['logs'],
    summary: 'Send an entry or a batch of entries',
    description: path === logsPaths[0] ? curlExample(path) : `The same as \`${logsPaths[0]}\`.`,
    parameters: Array.from(Object.entries(requestHeaders), ([name, described]) => ({
      in: 'header',
      name,
      ...described,
      example: described.schema.examples[0],
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
            examples: acceptedExamples,
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

export const livezOperation = health('isAlive', 'Whether the process answers')
export const readyzOperation = health('isReady', 'Whether the process can accept entries', {
  503: problem(503, ['not_ready'], []),
})
