import swagger, { type FastifyDynamicSwaggerOptions } from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import apiPackage from '../../package.json' with { type: 'json' }
import type { Operation } from './operations.ts'
import { schemas } from './schemas.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Describes the route in the OpenAPI document. It is not the route's `schema`, by which Fastify would validate bodies. */
    operation?: Operation
  }
}

const description = `Accepts log entries and stores each accepted entry exactly once.

A **202**, or a 200 to OTLP logs, means that the entries are on disk in the queue and will be stored in the database. Every other response is a
problem document with a stable \`code\`.

Keep the API key on servers: no response has CORS headers, so browsers cannot use the API from a web page.

Characters are Unicode code points. Nothing is truncated or converted: an entry that exceeds a limit is rejected, except by the APIs of shippers and OTLP.

The APIs that shippers already have (Elasticsearch, Loki, Splunk, Datadog) are described in \`docs/sources\`.`

const openapi = {
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
}

/** Collects the operations of the routes that are added afterwards. `app.swagger()` is then the OpenAPI 3.1 document. */
export function collectOperations(app: FastifyInstance): void {
  void app.register(swagger, {
    openapi: openapi as unknown as NonNullable<FastifyDynamicSwaggerOptions['openapi']>,
    convertConstToEnum: false,
    transform: ({ route, url }) => ({ schema: route.config?.operation ?? { hide: true }, url }),
  })
}
