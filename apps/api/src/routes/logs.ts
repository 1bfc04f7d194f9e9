import type { Project } from '@sluice/projects'
import { QueueFullError, QueueUnavailableError } from '@sluice/queue'
import type { Owned, Rows } from '@sluice/row-scanner'
import type { RequestStamp } from '@sluice/rows'
import { limits } from '@sluice/schema'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { METHODS } from 'node:http'
import type { Authenticator } from '../authentication/authenticator.ts'
import type { ChunkWriter } from '../chunks/chunk-writer.ts'
import { logsPaths } from '../http-contract.ts'
import { readIdempotencyKey } from '../idempotency/idempotency-record.ts'
import type { Idempotency } from '../idempotency/idempotency.ts'
import { type BodyFormat, jsonFormat, ndjsonFormat } from '../intake/body.ts'
import { checkContentEncoding, ContentDecoder, decodeSmall } from '../intake/content-encoding.ts'
import type { Intake, ParsedRequest } from '../intake/intake.ts'
import { readBody, rejectBody } from '../intake/read-body.ts'
import type { AnswerCount, RequestCounts } from '../metrics/request-counts.ts'
import type { BodyBudget, ProjectBodies } from '../overload/body-budget.ts'
import { OverloadedError } from '../overload/overloaded-error.ts'
import type { OverloadMonitor } from '../overload/overload-monitor.ts'
import { Problem, problems } from '../problems.ts'
import type { Allowance } from '../rate-limits/allowance.ts'
import { type Amount, minus, nothing, plus, positive } from '../rate-limits/rate-limit.ts'
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
    /** The part of the request's cost that was taken before its entries were counted. Null on the fast path. */
    paid: Amount | null
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
  readonly counts: RequestCounts
  /** The clock of all API processes: rows expire by it. It may throw ClockError. */
  readonly wallMs: () => number
}

/** A request whose body has arrived. */
interface ReceivedRequest {
  /** Decoded before it is parsed. */
  body: Buffer
  readonly format: BodyFormat
  readonly contentType: string
  readonly stamp: RequestStamp
  readonly idempotencyKey: string | undefined
}

type LogsRequest = FastifyRequest<{ Body: Buffer | undefined }>

/** Decoding takes less time than parsing, per decoded byte, by at least this factor. */
const DECODED_PER_PARSED = 16

const emptyBody = Buffer.alloc(0)

/**
 * `POST` of an entry or a batch request: admitted before its body is read, then received, parsed, charged and stored.
 * Acknowledged when Redis has it.
 */
export function logsRoute(app: FastifyInstance, dependencies: LogsRouteDependencies): void {
  const { overload, bodies, counts } = dependencies
  const decoder = new ContentDecoder()
  app.decorateRequest('project', null)
  app.decorateRequest('allowance', null)
  app.decorateRequest('projectBodies', null)
  app.decorateRequest('bodyBytes', 0)
  app.decorateRequest('paid', null)
  // The body arrives as bytes. The intake decides whether they are UTF-8, JSON and entries.
  app.addContentTypeParser(Object.keys(formats), (request, payload, done) => {
    readBody(request, payload, bodies, done)
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
    const accepted = counts.countOf(url, 'POST', 202)
    app.post<{ Body: Buffer | undefined }>(url, {
      onRequest: (request, reply) => admit(request, reply, dependencies),
      errorHandler: (error, request, reply) => {
        // The length of this body was unknown. It was read up to the limit.
        const wasRead = request.headers['content-length'] === undefined && request.body === undefined
        if (wasRead && error instanceof Problem && error.code === 'body_too_large')
          chargeRejected(request, reply, limits.bodyBytesMax)
        throw error
      },
      handler: async (request, reply) => {
        let body = request.body ?? emptyBody
        try {
          const received = receive(request, dependencies.wallMs())
          counts.bodyBytes += body.length
          body = received.body = decode(request, body) ?? (await decodeLarge(request, body, decoder))
          counts.decodedBytes += body.length
          if (body !== request.body && !bodies.hold(request, body.length)) throw bodies.reject(request)
          const parsed =
            scanAndCharge(request, received, dependencies) ??
            (await parseAndCharge(request, received, dependencies))
          if (parsed.charged !== undefined) await parsed.charged
          if (request.allowance !== null) void reply.header('ratelimit', request.allowance.state)
          void reply.code(202).type('application/json; charset=utf-8')
          if (parsed.stored !== undefined) {
            await parsed.stored
            acknowledge(accepted, parsed.rows, request, counts)
            return parsed.answer
          }
          const { answer, isReplay } = await store(parsed.request, received, reply, dependencies)
          if (isReplay) counts.replays += 1
          acknowledge(accepted, isReplay ? 0 : parsed.request.rows.count, request, counts)
          return answer
        } catch (error) {
          settle(error, request, reply, body.length)
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

/** Charges a request whose body was rejected: it costs as much work as an accepted one. Updates the headers of the answer. */
function settle(error: unknown, request: FastifyRequest, reply: FastifyReply, bytes: number): void {
  const { allowance } = request
  if (allowance === null) return
  if (error instanceof Problem && [400, 413, 415].includes(problems[error.code].status))
    chargeRejected(request, reply, error.code === 'body_too_large' ? limits.bodyBytesMax : bytes)
  else void reply.header('ratelimit', allowance.state)
}

/** Counts one entry and the bytes of a rejected body, unless they were counted before. */
function chargeRejected(request: FastifyRequest, reply: FastifyReply, bytes: number): void {
  const { allowance } = request
  if (allowance === null) return
  chargeUpTo({ entries: 1, bytes }, request)
  void reply.header('ratelimit', allowance.state)
}

/** Charges what the request has not paid of a cost, whether it is covered or not: the work is done. */
function chargeUpTo(cost: Amount, request: FastifyRequest): void {
  const { allowance } = request
  const paid = request.paid ?? nothing
  const owed = positive(minus(cost, paid))
  if (allowance === null || (owed.entries === 0 && owed.bytes === 0)) return
  allowance.charge(owed)
  request.paid = plus(paid, owed)
}

/** Everything that can reject a request before its body is read. */
async function admit(
  request: FastifyRequest,
  reply: FastifyReply,
  { authenticator, rateLimits, overload, bodies }: LogsRouteDependencies,
): Promise<void> {
  const { headers } = request
  request.project = await authenticator.authenticate(headers.authorization, request, (project) => {
    request.allowance = rateLimits.of(project)
    if (request.allowance !== null) showLimits(request.allowance, reply)
  })
  request.allowance?.rejectEarly(headers)
  overload.check()
  checkContentEncoding(headers['content-encoding'])
  checkCharset(request)
  if (headers.expect === undefined) return
  // Last: the client need not send a body that is rejected.
  const problem = rejectBody(request, bodies)
  if (problem !== undefined) throw problem
  reply.raw.writeContinue()
}

/** Sets the rate limit headers for every answer. */
function showLimits(allowance: Allowance, reply: FastifyReply): void {
  void reply.header('ratelimit-policy', allowance.policy).header('ratelimit', allowance.state)
}

function receive(
  { project, headers, body = emptyBody, mediaType = '' }: LogsRequest,
  receivedAtMs: number,
): ReceivedRequest {
  if (project === null) throw new Error('the request is not authenticated')
  const { id: projectId, retentionDays } = project
  return {
    body,
    format: formats[mediaType] ?? jsonFormat,
    contentType: headers['content-type'] ?? '',
    stamp: { projectId, retentionDays, receivedAtMs },
    idempotencyKey: readIdempotencyKey(headers),
  }
}

/** Undefined for a large body. */
function decode({ headers, allowance }: LogsRequest, body: Buffer): Buffer | undefined {
  const encoding = headers['content-encoding']
  if (encoding === undefined) return body
  // The allowance may be used up since the body was admitted.
  allowance?.rejectEarly(headers)
  return decodeSmall(body, encoding)
}

/** Before it is decoded, a large body costs one entry, and its bytes as they arrived. */
async function decodeLarge(request: LogsRequest, body: Buffer, decoder: ContentDecoder): Promise<Buffer> {
  await pay(request, { entries: 1, bytes: body.length })
  const decoded = await decoder.decode(body, request.headers['content-encoding'])
  // Even if the decoded body turns out to be above the limit.
  chargeUpTo({ entries: 1, bytes: Math.ceil(decoded.length / DECODED_PER_PARSED) }, request)
  return decoded
}

/** Charges a part of the cost of a request, or its whole cost after a part of it. @throws Problem `rate_limited` */
async function pay(request: LogsRequest, cost: Amount): Promise<void> {
  const { allowance, paid } = request
  if (allowance === null) return
  await (paid === null ? allowance.take(cost) : allowance.raise(paid, cost))
  request.paid = cost
}

/** A request whose rows were passed to the writer, or a request with a copy of its rows that is not stored yet. */
type ChargedRequest =
  | {
      readonly charged: undefined
      readonly answer: string
      /** The number of its rows. */
      readonly rows: number
      readonly stored: Promise<void>
    }
  | {
      readonly charged: Promise<void> | undefined
      readonly request: ParsedRequest<Owned>
      readonly stored?: undefined
    }

/**
 * Scans an ordinary body and charges the rate limit. If the charge needs no round trip to Redis, the rows of a request without an
 * idempotency key go to the writer at once, straight from the scanner's memory.
 *
 * @returns undefined for a body that must be parsed
 * @throws Problem
 */
function scanAndCharge(
  { id, allowance, paid }: LogsRequest,
  { body, format, stamp, idempotencyKey }: ReceivedRequest,
  { intake, writer }: LogsRouteDependencies,
): ChargedRequest | undefined {
  return intake.scan(body, stamp, format, (parsed): ChargedRequest => {
    // A request without entries costs as much work as one with an entry.
    const cost = { entries: Math.max(1, parsed.entries), bytes: body.length }
    const charged = paid === null ? allowance?.take(cost) : allowance?.raise(paid, cost)
    if (charged === undefined && idempotencyKey === undefined)
      return {
        charged,
        answer: parsed.answer,
        rows: parsed.rows.count,
        stored: writeRows(parsed.rows, id, writer),
      }
    return { charged, request: { ...parsed, rows: parsed.rows.copy() } }
  })
}

/**
 * Charges one entry and the bytes of a body, then parses it, then charges the other entries: the work is paid for, whatever comes of it.
 *
 * @throws Problem
 */
async function parseAndCharge(
  request: LogsRequest,
  { body, format, stamp }: ReceivedRequest,
  { intake }: LogsRouteDependencies,
): Promise<ChargedRequest> {
  const cost = { entries: 1, bytes: body.length }
  await pay(request, cost)
  const parsed = await intake.parse(body, stamp, format)
  if (parsed.entries > 1) await pay(request, { ...cost, entries: parsed.entries })
  return { charged: undefined, request: parsed }
}

async function store(
  parsed: ParsedRequest<Owned>,
  { body, contentType, stamp, idempotencyKey }: ReceivedRequest,
  reply: FastifyReply,
  { writer, idempotency }: LogsRouteDependencies,
): Promise<{ readonly answer: string; readonly isReplay: boolean }> {
  if (idempotencyKey === undefined) {
    await writeRows(parsed.rows, reply.request.id, writer)
    return { answer: parsed.answer, isReplay: false }
  }
  const result = await idempotency.write({
    projectId: stamp.projectId,
    key: idempotencyKey,
    contentType,
    body,
    parsed,
    requestId: reply.request.id,
  })
  if (result.isReplay) void reply.header('idempotency-replayed', 'true')
  return result
}

function acknowledge(
  answer: AnswerCount,
  entries: number,
  { project, startedMs }: FastifyRequest,
  counts: RequestCounts,
): void {
  counts.acknowledged(answer, entries, project?.id ?? '', (performance.now() - startedMs) / 1_000)
}

function writeRows<Scope>(rows: Rows<Scope>, requestId: string, writer: ChunkWriter): Promise<void> {
  return rows.count > 0 ? writer.write(rows, requestId) : Promise.resolve()
}

/** @throws Problem `unsupported_media_type` */
function checkCharset({ headers }: FastifyRequest): void {
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(headers['content-type'] ?? '')?.[1]
  if (charset === undefined || /^utf-?8$/i.test(charset)) return
  throw new Problem('unsupported_media_type', 'JSON is UTF-8; omit the charset.')
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
