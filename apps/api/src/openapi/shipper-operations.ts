import { limits } from '@sluice/schema'
import { headerRefs } from './headers.ts'
import type { JsonObject } from './schemas.ts'

interface ShipperApi {
  readonly path: string
  readonly operationId: string
  readonly summary: string
  readonly page: string
  readonly request: { readonly type: string; readonly schema: JsonObject; readonly example: unknown }
  readonly success: { readonly status: number; readonly schema?: JsonObject; readonly example?: unknown }
}

const text: JsonObject = { type: 'string' }
const object: JsonObject = { type: 'object' }

/** The APIs that shippers already have. Their own documentation describes their bodies. */
const apis: readonly ShipperApi[] = [
  {
    path: '/elasticsearch/_bulk',
    operationId: 'elasticsearchBulk',
    summary: 'Bulk API of Elasticsearch',
    page: 'elasticsearch',
    request: {
      type: 'application/x-ndjson',
      schema: text,
      example: '{"create":{"_index":"shop"}}\n{"message":"paid","log.level":"info"}\n',
    },
    success: {
      status: 200,
      schema: {
        type: 'object',
        properties: {
          took: { type: 'integer' },
          errors: { type: 'boolean' },
          items: { type: 'array', items: object },
        },
      },
      example: {
        took: 0,
        errors: false,
        items: [{ create: { _index: 'shop', _id: null, status: 201, result: 'created' } }],
      },
    },
  },
  {
    path: '/loki/api/v1/push',
    operationId: 'lokiPush',
    summary: 'Push API of Loki, in JSON or in Protocol Buffers with snappy',
    page: 'loki',
    request: {
      type: 'application/json',
      schema: {
        type: 'object',
        required: ['streams'],
        properties: { streams: { type: 'array', items: object } },
      },
      example: {
        streams: [{ stream: { app: 'shop', level: 'info' }, values: [['1763632800000000000', 'paid']] }],
      },
    },
    success: { status: 204 },
  },
  {
    path: '/services/collector/event',
    operationId: 'splunkEvents',
    summary: 'HTTP Event Collector of Splunk',
    page: 'splunk-hec',
    request: { type: 'application/json', schema: object, example: { time: 1_763_632_800, event: 'paid' } },
    success: {
      status: 200,
      schema: { type: 'object', properties: { text, code: { type: 'integer' } } },
      example: { text: 'Success', code: 0 },
    },
  },
  {
    path: '/services/collector/raw',
    operationId: 'splunkLines',
    summary: 'HTTP Event Collector of Splunk, for lines of text',
    page: 'splunk-hec',
    request: { type: 'text/plain', schema: text, example: 'paid' },
    success: {
      status: 200,
      schema: { type: 'object', properties: { text, code: { type: 'integer' } } },
      example: { text: 'Success', code: 0 },
    },
  },
  {
    path: '/api/v2/logs',
    operationId: 'datadogLogs',
    summary: 'Logs API v2 of Datadog. The key is in the header DD-API-KEY',
    page: 'datadog',
    request: {
      type: 'application/json',
      schema: { anyOf: [object, { type: 'array', items: object }] },
      example: [{ message: 'paid', status: 'info', service: 'shop', ddtags: 'env:prod' }],
    },
    success: { status: 202, schema: object, example: {} },
  },
]

const headers = headerRefs(['X-Request-Id', 'RateLimit-Policy', 'RateLimit'])

/** The operations of shippers, by path. */
export function shipperOperations(): JsonObject {
  return Object.fromEntries(apis.map((api) => [api.path, { post: operationOf(api) }]))
}

function operationOf({ operationId, summary, page, request, success }: ShipperApi): JsonObject {
  const { status, schema, example } = success
  const content = schema === undefined ? {} : { 'application/json': { schema, example } }
  return {
    operationId,
    tags: ['shippers'],
    summary,
    description:
      `At most ${limits.bodyBytesMax} bytes and ${limits.recordsPerRequestMax} records. ` +
      `\`docs/sources/${page}.md\` has the mapping to entries, and the answers.`,
    requestBody: {
      required: true,
      content: { [request.type]: { schema: request.schema, example: request.example } },
    },
    responses: {
      [status]: { description: 'The valid records are stored.', headers, content },
      default: {
        description: 'A rejection, in the form and with the statuses of the API.',
        headers,
        content: {},
      },
    },
  }
}
