import packageJson from '../package.json' with { type: 'json' }
import { type OperationName, operationParameters, type Parameters } from './parameters.ts'
import { problems } from './problems.ts'

type JsonObject = Readonly<Record<string, unknown>>

const problem: JsonObject = {
  description: 'A problem document (RFC 9457).',
  content: {
    'application/problem+json': {
      schema: {
        type: 'object',
        required: ['type', 'title', 'status', 'detail', 'code', 'requestId'],
        properties: { code: { type: 'string', enum: Object.keys(problems) } },
      },
    },
  },
}

const answers: Partial<Record<OperationName, readonly string[]>> = {
  tail: ['text/event-stream'],
  export: ['application/x-ndjson', 'text/csv'],
}

const texts = (...names: string[]): JsonObject => ({
  type: 'object',
  required: names,
  properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
})
const json = (schema: JsonObject): JsonObject => ({ content: { 'application/json': { schema } } })
const ask = 'Asks a worker to insert dead letters again: one, or all with a code and a reason'

/** What needs the scope `admin`. */
const operatorPaths = {
  pipeline: { get: { summary: 'The state of queues and processes, and of the last minutes' } },
  'dead-letters': { get: { summary: 'Rows that ClickHouse rejected, by the reason' } },
  'dead-letters/retry': {
    post: { summary: ask, requestBody: json({ oneOf: [texts('id'), texts('code', 'reason')] }) },
  },
}

/** The OpenAPI document, made of the parameters by which requests are read. */
export function openapiDocument(): JsonObject {
  return {
    openapi: '3.1.1',
    info: {
      title: 'Sluice queries',
      version: packageJson.version,
      summary: 'Reads the log entries of a project.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    security: [{ apiKey: [] }],
    components: {
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          description: "A project's API key with the scope `read`, or `admin` for the pipeline.",
        },
      },
    },
    paths: Object.fromEntries([
      ...(Object.keys(operationParameters) as OperationName[]).map((name) => [
        `/v1/query/${name}`,
        { get: operation(name) },
      ]),
      ...Object.entries(operatorPaths).map(([name, methods]) => [
        `/v1/query/${name}`,
        Object.fromEntries(
          Object.entries(methods).map(([method, described]) => [
            method,
            { ...described, responses: { '2XX': json({ type: 'object' }), default: problem } },
          ]),
        ),
      ]),
    ]),
  }
}

function operation(name: OperationName): JsonObject {
  const { summary, parameters }: { summary: string; parameters: Parameters } = operationParameters[name]
  const content = Object.fromEntries((answers[name] ?? ['application/json']).map((type) => [type, {}]))
  return {
    operationId: name,
    summary,
    parameters: Object.entries(parameters).map(([parameter, { description, schema, absent }]) => ({
      name: parameter,
      in: 'query',
      description,
      required: absent === undefined,
      schema,
    })),
    responses: { 200: { description: 'The answer.', content }, default: problem },
  }
}
