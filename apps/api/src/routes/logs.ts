import { limits } from '@sluice/schema'
import type { Project } from '@sluice/projects'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Authenticator } from '../authentication/authenticator.ts'
import { QueueUnavailableError } from '../chunks/chunk-queue.ts'
import type { ChunkWriter } from '../chunks/chunk-writer.ts'
import type { Idempotency, KeyedRequest } from '../idempotency/idempotency.ts'
import { readIdempotencyKey } from '../idempotency/idempotency-key.ts'
import { jsonFormat, type BodyFormat } from '../intake/body.ts'
import { decodeContent, decoderFor } from '../intake/content-encoding.ts'
import type { Intake, TakenIn } from '../intake/intake.ts'
import { ndjsonFormat } from '../intake/ndjson.ts'
import { OverloadedError } from '../overload/overloaded-error.ts'
import type { OverloadMonitor } from '../overload/overload-monitor.ts'
import { Problem } from '../problems.ts'
import type { Allowance } from '../rate-limits/allowance.ts'
import type { RateLimits } from '../rate-limits/rate-limits.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The project that the request's key belongs to. Null before authentication. */
    project: Project | null
    /** What that project may still send. Null when it has no limit. */
    allowance: Allowance | null
  }
}

/** One resource under two addresses. */
export const logsPaths: readonly string[] = ['/v1/logs', '/api/v1/logs']

/** What a body may be: media types that Fluent Bit, Fluentd, Logstash and Vector send. */
const formats: Readonly<Record<string, BodyFormat>> = {
  'application/json': jsonFormat,
  'application/x-ndjson': ndjsonFormat,
}

export interface LogsRouteDependencies {
  readonly authenticator: Authenticator
  readonly rateLimits: RateLimits
  readonly intake: Intake
  readonly writer: ChunkWriter
  readonly idempotency: Idempotency
  readonly overload: Pick<OverloadMonitor, 'check' | 'refuse'>
  readonly now: () => number
}

/** `POST` of an entry or a batch: authenticated before the body is read, acknowledged once Redis has it. */
export function logsRoute(app: FastifyInstance, dependencies: LogsRouteDependencies): void {
  const { authenticator, rateLimits, intake, writer, idempotency, overload, now } = dependencies
  app.decorateRequest('project', null)
  app.decorateRequest('allowance', null)
  // The body arrives as bytes: whether they are UTF-8, JSON and entries is decided in one place, by the intake.
  app.addContentTypeParser(Object.keys(formats), { parseAs: 'buffer' }, (request, body, done) => {
    const problem = checkCharset(request)
    if (problem === undefined) done(null, body)
    else done(problem)
  })

  for (const url of logsPaths) {
    app.post<{ Body: Buffer | undefined }>(url, {
      bodyLimit: limits.bodyBytesMax,
      onRequest: async (request, reply) => {
        request.project = await authenticator.authenticate(request.headers.authorization, request)
        request.allowance = rateLimits.of(request.project)
        if (request.allowance !== null) limitEarly(request.allowance, request, reply)
        overload.check()
        decoderFor(request.headers['content-encoding'])
        // Not earlier: a body that is refused need not be sent.
        if (request.headers.expect !== undefined) reply.raw.writeContinue()
      },
      handler: async (request, reply) => {
        const { project, allowance } = request
        if (project === null) throw new Error('the request is not authenticated')
        const stamp = { projectId: project.id, retentionDays: project.retentionDays, receivedAtMs: now() }
        const key = readIdempotencyKey(request.headers)
        const body = decodeContent(request.body, request.headers['content-encoding'])
        let taken = intake.take(body, stamp, formats[request.mediaType ?? ''])
        const leased = allowance?.take({ entries: taken.entries, bytes: body?.length ?? 0 })
        // What is not written in this turn is kept out of the way of the next request's rows.
        if (leased !== undefined || key !== undefined) taken = { ...taken, text: Buffer.from(taken.text) }
        if (leased !== undefined) await leased
        if (allowance !== null) void reply.header('ratelimit', allowance.state)
        void reply.code(202).type('application/json; charset=utf-8')
        try {
          if (key === undefined) {
            if (taken.rows > 0) await writer.write(taken.rows, taken.text)
            return taken.answer
          }
          const keyed = describeKeyed(request, project.id, key, body, taken)
          const { answer, isReplay } = await idempotency.write(keyed)
          if (isReplay) void reply.header('idempotency-replayed', 'true')
          return answer
        } catch (error) {
          throw toProblem(error, overload)
        }
      },
    })
  }
}

/** Tells the limit, whatever the answer will be, and refuses what is over it before its body is read. */
function limitEarly(allowance: Allowance, { headers }: FastifyRequest, reply: FastifyReply): void {
  void reply.header('ratelimit-policy', allowance.policy).header('ratelimit', allowance.state)
  allowance.refuseEarly(headers)
}

function describeKeyed(
  { headers }: FastifyRequest,
  projectId: string,
  key: string,
  body: Buffer | undefined,
  taken: TakenIn,
): KeyedRequest {
  if (body === undefined) throw new Error('a request without a body was taken')
  return { projectId, key, contentType: headers['content-type'] ?? '', body, taken }
}

function checkCharset({ headers }: FastifyRequest): Problem | undefined {
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(headers['content-type'] ?? '')?.[1]
  if (charset === undefined || /^utf-?8$/i.test(charset)) return undefined
  return new Problem('unsupported_media_type', 'JSON is UTF-8; leave the charset out.')
}

/** What the client is told when its entries could not be written. */
function toProblem(error: unknown, overload: LogsRouteDependencies['overload']): unknown {
  if (error instanceof OverloadedError) return overload.refuse(error.reason)
  if (error instanceof QueueUnavailableError) {
    return new Problem('queue_unavailable', 'The queue did not answer in time. Try again.', {
      headers: { 'retry-after': '1' },
    })
  }
  return error
}
