import { hash, timingSafeEqual } from 'node:crypto'
import { type Entry, entrySchema, limits } from '@sluice/schema'
import { fastify, type FastifyInstance } from 'fastify'
import { type Row, toRow } from './row.ts'

/** Settings of both baselines' API processes, in addition to the settings of every process. */
export const apiSettings = {
  PORT: { type: 'integer', minimum: 1, maximum: 65_535, default: 3000, description: "The API's port." },
  API_KEY: { type: 'string', default: '', description: 'The API key that clients send.' },
  PROJECT_ID: { type: 'string', default: 'bench', description: 'The project of the API key.' },
} as const

/** A body with `logs` is a batch request; any other body is a single entry. */
const bodySchema = {
  type: 'object',
  if: { type: 'object', required: ['logs'] },
  // oxlint-disable-next-line unicorn/no-thenable -- a JSON Schema keyword
  then: {
    type: 'object',
    properties: {
      logs: { type: 'array', maxItems: limits.entriesPerRequestMax, items: { $ref: 'Entry#' } },
    },
  },
  else: { $ref: 'Entry#' },
} as const

const AUTHORIZATION = /^bearer +(\S+)$/i

/** The HTTP side of both baselines: an API key check, Fastify's JSON parser, ajv validation, and then `store`. */
export function buildApp(options: {
  apiKey: string
  projectId: string
  /** Resolves when the rows may be acknowledged. */
  store: (rows: readonly Row[]) => Promise<void>
}): FastifyInstance {
  const { apiKey, projectId, store } = options
  const keyHash = sha256(apiKey)
  const app = fastify({
    bodyLimit: limits.bodyBytesMax,
    // Like Sluice: values are neither converted nor removed, and requests are not logged.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, allowUnionTypes: true } },
    logger: false,
  })
  app.addSchema(entrySchema)
  app.get('/readyz', () => ({ status: 'ok' }))
  app.post<{ Body: Entry | { logs: Entry[] } }>('/v1/logs', {
    schema: { body: bodySchema },
    onRequest: async (request, reply) => {
      if (!hasKey(request.headers.authorization, keyHash))
        await reply.code(401).send({ error: 'unauthorized' })
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

function hasKey(authorization: string | undefined, keyHash: Buffer): boolean {
  const key = authorization === undefined ? undefined : AUTHORIZATION.exec(authorization)?.[1]
  return key !== undefined && timingSafeEqual(sha256(key), keyHash)
}

function sha256(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}
