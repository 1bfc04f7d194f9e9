import type { Project } from '@sluice/projects'
import { QueueFullError, QueueUnavailableError } from '@sluice/queue'
import type { Owned, Rows } from '@sluice/row-scanner'
import type { RequestStamp } from '@sluice/rows'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { METHODS } from 'node:http'
import type { Authenticator } from '../authentication/authenticator.ts'
import type { ChunkWriter } from '../chunks/chunk-writer.ts'
import { logsPaths } from '../http-contract.ts'
import { readIdempotencyKey } from '../idempotency/idempotency-record.ts'
import type { Idempotency } from '../idempotency/idempotency.ts'
import { jsonFormat, type BodyFormat } from '../intake/body.ts'
import { checkContentEncoding, decodeContent } from '../intake/content-encoding.ts'
import type { Intake, ParsedRequest } from '../intake/intake.ts'
import { ndjsonFormat } from '../intake/ndjson.ts'
import { readBody, rejectBody } from '../intake/read-body.ts'
import type { BodyBudget, ProjectBodies } from '../overload/body-budget.ts'
import { OverloadedError } from '../overload/overloaded-error.ts'
import type { OverloadMonitor } from '../overload/overload-monitor.ts'
import { Problem, problems } from '../problems.ts'
import type { Allowance } from '../rate-limits/allowance.ts'
import type { ProjectRateLimits } from '../rate-limits/project-rate-limits.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The project that the API key belongs to. Null before authentication. */
    project: Project | null
    /** The project's rate limit. Null for a project without one. */
    allowance: Allowance | null
    /** What the budget of bodies holds for this request. */
    projectBodies: ProjectBodies | null
    bodyBytes: number
  }
}

/** The accepted media types: those that Fluent Bit, Fluentd, Logstash and Vector send. */
const formats: Readonly<Record<string, BodyFormat>> = {
  'application/json': jsonFormat,
  'application/x-ndjson': ndjsonFormat,
}

export interface LogsRouteDependencies {
  readonly authenticator: Authenticator
  readonly rateLimits: ProjectRateLimits
  readonly intake: Intake
  readonly writer: ChunkWriter
  readonly idempotency: Idempotency
  readonly overload: Pick<OverloadMonitor, 'check' | 'reject'>
  readonly bodies: BodyBudget
  /** The clock of all API processes: rows expire by it. It may throw ClockError. */
  readonly wallMs: () => number
}

/** A request whose body has arrived. */
interface ReceivedRequest {
  /** Decoded. */
  readonly body: Buffer
  readonly format: BodyFormat
  readonly contentType: string
  readonly stamp: RequestStamp
  readonly idempotencyKey: string | undefined
}

type LogsRequest = FastifyRequest<{ Body: Buffer | undefined }>

/**
 * `POST` of an entry or a batch request: admitted before its body is read, then received, parsed, charged and stored.
 * Acknowledged when Redis has it.
 */
export function logsRoute(app: FastifyInstance, dependencies: LogsRouteDependencies): void {
  const { overload, bodies } = dependencies
  app.decorateRequest('project', null)
  app.decorateRequest('allowance', null)
  app.decorateRequest('projectBodies', null)
  app.decorateRequest('bodyBytes', 0)
  // The body arrives as bytes. The intake decides whether they are UTF-8, JSON and entries.
  app.addContentTypeParser(Object.keys(formats), (request, payload, done) => {
    const problem = checkCharset(request)
    if (problem === undefined) readBody(request, payload, bodies, done)
    else done(problem)
  })

  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)
  for (const url of logsPaths) {
    app.route({
      method: METHODS.filter((method) => method !== 'POST'),
      url,
      exposeHeadRoute: false,
      onRequest: (_request, _reply, done) => done(methodNotAllowed()),
      handler: () => {
        throw methodNotAllowed()
      },
    })
    app.post<{ Body: Buffer | undefined }>(url, {
      onRequest: (request, reply) => admit(request, reply, dependencies),
      handler: async (request, reply) => {
        try {
          const received = receive(request, dependencies)
          const parsed = parseAndCharge(request, received, dependencies)
          if (parsed.charged !== undefined) await parsed.charged
          if (request.allowance !== null) void reply.header('ratelimit', request.allowance.state)
          void reply.code(202).type('application/json; charset=utf-8')
          if (parsed.stored !== undefined) {
            await parsed.stored
            return parsed.answer
          }
          return await store(parsed.request, received, reply, dependencies)
        } catch (error) {
          throw toProblem(error, overload)
        } finally {
          bodies.release(request)
        }
      },
    })
  }
}

function methodNotAllowed(): Problem {
  return new Problem('method_not_allowed', problems.method_not_allowed.detail, { headers: { allow: 'POST' } })
}

/** Everything that can reject a request before its body is read. */
async function admit(
  request: FastifyRequest,
  reply: FastifyReply,
  { authenticator, rateLimits, overload, bodies }: LogsRouteDependencies,
): Promise<void> {
  request.project = await authenticator.authenticate(request.headers.authorization, request)
  request.allowance = rateLimits.of(request.project)
  if (request.allowance !== null) limitEarly(request.allowance, request, reply)
  overload.check()
  checkContentEncoding(request.headers['content-encoding'])
  if (request.headers.expect === undefined) return
  // Last: the client need not send a body that is rejected.
  const problem = rejectBody(request, bodies)
  if (problem !== undefined) throw problem
  reply.raw.writeContinue()
}

/** Sets the rate limit headers for every answer, and rejects a request whose declared size is above the limit. */
function limitEarly(allowance: Allowance, { headers }: FastifyRequest, reply: FastifyReply): void {
  void reply.header('ratelimit-policy', allowance.policy).header('ratelimit', allowance.state)
  allowance.rejectEarly(headers)
}

function receive(request: LogsRequest, { bodies, wallMs }: LogsRouteDependencies): ReceivedRequest {
  const { project, headers, body = Buffer.alloc(0), mediaType = '' } = request
  if (project === null) throw new Error('the request is not authenticated')
  const receivedAtMs = wallMs()
  const { id: projectId, retentionDays } = project
  const idempotencyKey = readIdempotencyKey(headers)
  const decoded = decodeContent(body, headers['content-encoding'])
  if (decoded !== body && !bodies.hold(request, decoded.length)) throw bodies.reject(request)
  return {
    body: decoded,
    format: formats[mediaType] ?? jsonFormat,
    contentType: headers['content-type'] ?? '',
    stamp: { projectId, retentionDays, receivedAtMs },
    idempotencyKey,
  }
}

/** A request whose rows were passed to the writer, or a request with a copy of its rows that is not stored yet. */
type ChargedRequest =
  | { readonly charged: undefined; readonly answer: string; readonly stored: Promise<void> }
  | {
      readonly charged: Promise<void> | undefined
      readonly request: ParsedRequest<Owned>
      readonly stored?: undefined
    }

/**
 * Parses the body and charges the rate limit. If the charge needs no round trip to Redis, the rows of a request without an
 * idempotency key go to the writer at once, straight from the scanner's memory.
 *
 * @throws Problem
 */
function parseAndCharge(
  { allowance }: LogsRequest,
  { body, format, stamp, idempotencyKey }: ReceivedRequest,
  { intake, writer }: LogsRouteDependencies,
): ChargedRequest {
  return intake.parse(body, stamp, format, (parsed): ChargedRequest => {
    // A request without entries costs as much work as one with an entry.
    const charged = allowance?.take({ entries: Math.max(1, parsed.entries), bytes: body.length })
    if (charged === undefined && idempotencyKey === undefined)
      return { charged, answer: parsed.answer, stored: writeRows(parsed.rows, writer) }
    return { charged, request: { ...parsed, rows: parsed.rows.copy() } }
  })
}

async function store(
  parsed: ParsedRequest<Owned>,
  { body, contentType, stamp, idempotencyKey }: ReceivedRequest,
  reply: FastifyReply,
  { writer, idempotency }: LogsRouteDependencies,
): Promise<string> {
  if (idempotencyKey === undefined) {
    await writeRows(parsed.rows, writer)
    return parsed.answer
  }
  const { answer, isReplay } = await idempotency.write({
    projectId: stamp.projectId,
    key: idempotencyKey,
    contentType,
    body,
    parsed,
  })
  if (isReplay) void reply.header('idempotency-replayed', 'true')
  return answer
}

function writeRows<Scope>(rows: Rows<Scope>, writer: ChunkWriter): Promise<void> {
  return rows.count > 0 ? writer.write(rows) : Promise.resolve()
}

function checkCharset({ headers }: FastifyRequest): Problem | undefined {
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(headers['content-type'] ?? '')?.[1]
  if (charset === undefined || /^utf-?8$/i.test(charset)) return undefined
  return new Problem('unsupported_media_type', 'JSON is UTF-8; omit the charset.')
}

/** The answer to a request whose entries could not be stored. */
function toProblem(error: unknown, overload: LogsRouteDependencies['overload']): unknown {
  if (error instanceof OverloadedError) return overload.reject(error.reason)
  if (error instanceof QueueFullError) return overload.reject('redis_memory')
  if (error instanceof QueueUnavailableError) {
    return new Problem('queue_unavailable', problems.queue_unavailable.detail, {
      headers: { 'retry-after': '1' },
    })
  }
  return error
}
