import { limits } from '@sluice/schema'
import type { Project } from '@sluice/projects'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Authenticator } from '../authentication/authenticator.ts'
import { QueueUnavailableError } from '../chunks/chunk-queue.ts'
import { OverloadedError, type ChunkWriter } from '../chunks/chunk-writer.ts'
import { parseJsonBody, type BodyParser } from '../intake/body.ts'
import { decodeContent, decoderFor } from '../intake/content-encoding.ts'
import type { Intake } from '../intake/intake.ts'
import { parseNdjsonBody } from '../intake/ndjson.ts'
import { Problem } from '../problems.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The project that the request's key belongs to. Null before authentication. */
    project: Project | null
  }
}

/** One resource under two addresses. */
export const logsPaths: readonly string[] = ['/v1/logs', '/api/v1/logs']

/** What a body may be: media types that Fluent Bit, Fluentd, Logstash and Vector send. */
const parsers: Readonly<Record<string, BodyParser>> = {
  'application/json': parseJsonBody,
  'application/x-ndjson': parseNdjsonBody,
}

export interface LogsRouteDependencies {
  readonly authenticator: Authenticator
  readonly intake: Intake
  readonly writer: ChunkWriter
  readonly now: () => number
}

/** `POST` of an entry or a batch: authenticated before the body is read, acknowledged once Redis has it. */
export function logsRoute(app: FastifyInstance, dependencies: LogsRouteDependencies): void {
  const { authenticator, intake, writer, now } = dependencies
  app.decorateRequest('project', null)
  // The body arrives as bytes: whether they are UTF-8, JSON and entries is decided in one place, by the intake.
  app.addContentTypeParser(Object.keys(parsers), { parseAs: 'buffer' }, (request, body, done) => {
    const problem = checkCharset(request)
    if (problem === undefined) done(null, body)
    else done(problem)
  })

  for (const url of logsPaths) {
    app.post<{ Body: Buffer | undefined }>(url, {
      bodyLimit: limits.bodyBytesMax,
      onRequest: async (request, reply) => {
        request.project = await authenticator.authenticate(request.headers.authorization)
        decoderFor(request.headers['content-encoding'])
        // Not earlier: a body that is refused need not be sent.
        if (request.headers.expect !== undefined) reply.raw.writeContinue()
      },
      handler: async (request, reply) => {
        const { project } = request
        if (project === null) throw new Error('the request is not authenticated')
        const stamp = { projectId: project.id, retentionDays: project.retentionDays, receivedAtMs: now() }
        const body = decodeContent(request.body, request.headers['content-encoding'])
        const { rows, text, answer } = intake.take(body, stamp, parsers[request.mediaType ?? ''])
        if (rows > 0) await writer.write(rows, text).catch(toProblem)
        return reply.code(202).type('application/json').send(answer)
      },
    })
  }
}

function checkCharset({ headers }: FastifyRequest): Problem | undefined {
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(headers['content-type'] ?? '')?.[1]
  if (charset === undefined || /^utf-?8$/i.test(charset)) return undefined
  return new Problem('unsupported_media_type', 'JSON is UTF-8; leave the charset out.')
}

function toProblem(error: unknown): never {
  const headers = { 'retry-after': '1' }
  if (error instanceof OverloadedError) {
    throw new Problem('overloaded', 'Too much is waiting to be queued. Try again later.', { headers })
  }
  if (error instanceof QueueUnavailableError) {
    throw new Problem('queue_unavailable', 'The queue did not answer in time. Try again.', { headers })
  }
  throw error
}
