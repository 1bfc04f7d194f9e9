import { limits } from '@sluice/schema'
import apiPackage from '../../package.json' with { type: 'json' }
import { logsPaths } from '../routes/logs.ts'
import { acceptedExamples, bodyExamples, curlExamples } from './examples.ts'
import { headerRefs, requestHeaders, responseHeaders } from './headers.ts'
import { healthRefusals, logsRefusals } from './problem-responses.ts'
import { schemaRef, schemas, type JsonObject } from './schemas.ts'

/** What each limit is a limit of, for people. */
const limitNames: Readonly<Record<keyof typeof limits, string>> = {
  messageCharactersMax: '`message`, characters',
  stackCharactersMax: '`stack`, characters',
  urlCharactersMax: '`url`, characters',
  pathnameCharactersMax: '`pathname`, characters',
  serviceCharactersMax: '`service`, characters',
  metadataBytesMax: '`metadata`, bytes as JSON',
  metadataDepthMax: '`metadata`, levels, itself one of them',
  metadataNamesMax: '`metadata`, names at the top level',
  entriesPerBatchMax: 'entries in a request',
  bodyBytesMax: 'the body, bytes once it is decoded',
  errorsPerEntryMax: 'errors that are told of an entry',
}

const limitRows = Object.entries(limits).map(
  ([name, limit]) => `| ${limitNames[name as keyof typeof limits]} | ${limit.toLocaleString('en')} |`,
)

const description = `Takes log entries, and stores each one that it accepted exactly once.

A **202** means that the entries are on disk in the queue, and will be in the database. Any other answer is a problem
document with a stable \`code\`.

The API key belongs in servers: no answer has CORS headers, so that it cannot be used from a page.

## Limits

| What | At most |
| --- | ---: |
${limitRows.join('\n')}

Characters are Unicode code points. Nothing is cut and nothing is converted: what does not fit is refused.`

/** The OpenAPI 3.1 document of the API, from what validates and answers its requests. */
export function buildDocument(): JsonObject {
  return {
    openapi: '3.1.1',
    info: {
      title: 'Sluice',
      version: apiPackage.version,
      summary: 'Log ingestion that loses nothing and doubles nothing.',
      description,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: [
      { name: 'logs', description: 'Sending entries.' },
      { name: 'health', description: 'Whether the process answers, and whether it can take entries.' },
    ],
    security: [{ apiKey: [] }],
    paths: {
      ...Object.fromEntries(logsPaths.map((path) => [path, { post: postLogs(path) }])),
      '/livez': { get: health('isAlive', 'Whether the process answers', {}) },
      '/readyz': { get: health('isReady', 'Whether the process can take entries', healthRefusals()) },
    },
    components: {
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'slk_…',
          description: "A project's API key with the scope `ingest`. It is checked before the body is read.",
        },
      },
      schemas,
      headers: responseHeaders,
    },
  }
}

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
      description: `UTF-8, at most ${limits.bodyBytesMax} bytes and ${limits.entriesPerBatchMax} entries.`,
      content: {
        'application/json': {
          schema: { anyOf: [schemaRef('Entry'), schemaRef('Batch'), schemaRef('Entries')] },
          examples: bodyExamples['application/json'],
        },
        'application/x-ndjson': {
          schema: {
            type: 'string',
            description:
              'An `Entry` a line; blank lines are skipped. A line that is no JSON is one rejected entry. ' +
              'It is answered as a batch.',
          },
          examples: bodyExamples['application/x-ndjson'],
        },
      },
    },
    responses: {
      202: {
        description: 'Accepted: on disk in the queue, and to be stored exactly once.',
        headers: headerRefs(['X-Request-Id', 'RateLimit-Policy', 'RateLimit', 'Idempotency-Replayed']),
        content: {
          'application/json': {
            schema: { oneOf: [schemaRef('EntryAccepted'), schemaRef('BatchAccepted')] },
            examples: acceptedExamples,
          },
        },
      },
      ...logsRefusals(),
    },
  }
}

function health(operationId: string, summary: string, refusals: JsonObject): JsonObject {
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
      ...refusals,
    },
  }
}
