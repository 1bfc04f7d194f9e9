import apiPackage from '../../package.json' with { type: 'json' }
import { logsPaths } from '../http-contract.ts'
import { livezOperation, logsOperation, readyzOperation } from './operations.ts'
import { schemas } from './schemas.ts'

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
