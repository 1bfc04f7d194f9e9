import { limits } from '@sluice/schema'
import apiPackage from '../../package.json' with { type: 'json' }
import { logsPaths } from '../http-contract.ts'
import { OTLP_PROTOBUF } from '../protocols/otlp/answers.ts'
import { acceptedExamples, bodyExamples, curlExamples, otlpAcceptedExamples } from './examples.ts'
import { headerRefs, requestHeaders, responseHeaders, type ResponseHeader } from './headers.ts'
import { healthProblems, logsProblems } from './problem-responses.ts'
import { schemaRef, schemas, type JsonObject } from './schemas.ts'

/** Human-readable names of the limits. */
const limitNames: Readonly<Record<keyof typeof limits, string>> = {
  messageCharactersMax: '`message`, characters',
  stackCharactersMax: '`stack`, characters',
  urlCharactersMax: '`url`, characters',
  pathnameCharactersMax: '`pathname`, characters',
  serviceCharactersMax: '`service`, characters',
  metadataBytesMax: '`metadata`, bytes as JSON',
  metadataDepthMax: '`metadata`, levels of nesting including itself',
  metadataNamesMax: '`metadata`, names at the top level',
  entriesPerRequestMax: 'entries per request',
  recordsPerRequestMax: 'records per request of a shipper (OTLP and others)',
  rowBytesPerRequestMax: 'rows of a request of a shipper, bytes',
  bodyBytesMax: 'decoded body, bytes',
  errorsPerEntryMax: 'errors reported per entry',
}

const limitRows = Object.entries(limits).map(
  ([name, limit]) => `| ${limitNames[name as keyof typeof limits]} | ${limit.toLocaleString('en')} |`,
)

const description = `Accepts log entries and stores each accepted entry exactly once.

A **202**, or a 200 to OTLP logs, means that the entries are on disk in the queue and will be stored in the database. Every other answer is a
problem document with a stable \`code\`.

Keep the API key on servers: no answer has CORS headers, so browsers cannot use the API from a web page.

## Limits

| Limit | Maximum |
| --- | ---: |
${limitRows.join('\n')}

Characters are Unicode code points. Nothing is truncated or converted: an entry that exceeds a limit is rejected.`

/** The OpenAPI 3.1 document of the API, built from the schemas, limits and problems that the code uses. */
export function buildDocument(): JsonObject {
  return {
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
    paths: {
      ...Object.fromEntries(logsPaths.map((path) => [path, { post: postLogs(path) }])),
      '/livez': { get: health('isAlive', 'Whether the process answers', {}) },
      '/readyz': { get: health('isReady', 'Whether the process can accept entries', healthProblems()) },
    },
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
      headers: responseHeaders,
    },
  }
}

const acceptedHeaders: readonly ResponseHeader[] = [
  'X-Request-Id',
  'RateLimit-Policy',
  'RateLimit',
  'Idempotency-Replayed',
]

function postLogs(path: string): JsonObject {
  const [first] = logsPaths
  return {
    // `/v1/logs` is postV1Logs.
    operationId: `post${path.replaceAll(/\/(\w)/g, (_, letter: string) => letter.toUpperCase())}`,
    tags: ['logs'],
    summary: 'Send an entry or a batch of entries',
    description: `${path === first ? '' : `The same as \`${first}\`.\n\n`}${curlExamples(path)}`,
    parameters: requestHeaders,
    requestBody: {
      required: true,
      description:
        `UTF-8, at most ${limits.bodyBytesMax} bytes and ${limits.entriesPerRequestMax} entries. OTLP logs may have ` +
        `${limits.recordsPerRequestMax} records.`,
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
              'The answer is that to a batch.',
          },
          examples: bodyExamples['application/x-ndjson'],
        },
        [OTLP_PROTOBUF]: {
          schema: {
            type: 'string',
            contentMediaType: OTLP_PROTOBUF,
            description: 'OTLP logs: an ExportLogsServiceRequest in Protocol Buffers.',
          },
          examples: {},
        },
      },
    },
    responses: {
      200: {
        description:
          'Accepted OTLP logs: the records are on disk in the queue and will be stored exactly once.',
        headers: headerRefs(acceptedHeaders),
        content: {
          'application/json': { schema: schemaRef('OtlpAccepted'), examples: otlpAcceptedExamples },
          // The JSON form of the message stands for its bytes.
          [OTLP_PROTOBUF]: { schema: schemaRef('OtlpAccepted'), examples: otlpAcceptedExamples },
        },
      },
      202: {
        description: 'Accepted: the entries are on disk in the queue and will be stored exactly once.',
        headers: headerRefs(acceptedHeaders),
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

function health(operationId: string, summary: string, problemResponses: JsonObject): JsonObject {
  return {
    operationId,
    tags: ['health'],
    summary,
    security: [],
    responses: {
      200: {
        description: 'Yes.',
        headers: headerRefs(['X-Request-Id']),
        content: { 'application/json': { schema: schemaRef('Health'), example: { status: 'ok' } } },
      },
      ...problemResponses,
    },
  }
}
