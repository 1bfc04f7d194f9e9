import { entrySchema, limits, type Entry } from '@sluice/schema'
import { fastify, type FastifyInstance } from 'fastify'
import { KeyCheck } from './key-check.ts'
import { toRow, type Row } from './row.ts'

/** What a body may be: a batch if it has `logs`, else an entry. */
const bodySchema = {
  type: 'object',
  if: { type: 'object', required: ['logs'] },
  // oxlint-disable-next-line unicorn/no-thenable -- JSON Schema's own keyword
  then: {
    type: 'object',
    properties: {
      logs: { type: 'array', maxItems: limits.entriesPerBatchMax, items: { $ref: 'Entry#' } },
    },
  },
  else: { $ref: 'Entry#' },
} as const

/** Both baselines' HTTP side: a key check, Fastify's own parser, ajv by Fastify's schemas, and then `store`. */
export function buildApp(options: {
  apiKey: string
  projectId: string
  /** Resolves when the rows may be acknowledged. */
  store: (rows: readonly Row[]) => Promise<void>
}): FastifyInstance {
  const { apiKey, projectId, store } = options
  const keys = new KeyCheck(apiKey)
  const app = fastify({
    bodyLimit: limits.bodyBytesMax,
    // Like the service, nothing is converted or taken away, and requests are not logged.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, allowUnionTypes: true } },
    logger: false,
  })
  app.addSchema(entrySchema)
  app.get('/readyz', () => ({ status: 'ok' }))
  app.post<{ Body: Entry | { logs: Entry[] } }>('/v1/logs', {
    schema: { body: bodySchema },
    onRequest: async (request, reply) => {
      if (!keys.accepts(request.headers.authorization)) await reply.code(401).send({ error: 'unauthorized' })
    },
    handler: async ({ body }, reply) => {
      const receivedAtMs = Date.now()
      const entries = 'logs' in body ? (body.logs as Entry[]) : [body]
      const rows = entries.map((entry) => toRow(entry, projectId, receivedAtMs))
      if (rows.length > 0) await store(rows)
      return reply.code(202).send({ success: true, accepted: rows.length, rejected: 0 })
    },
  })
  return app
}
