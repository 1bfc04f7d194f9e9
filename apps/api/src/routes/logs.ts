import type { Owned, Rows } from '@sluice/row-scanner'
import type { RequestStamp } from '@sluice/rows'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { ChunkWriter } from '../chunks/chunk-writer.ts'
import { logsPaths } from '../http-contract.ts'
import type { RequestIdentity } from '../idempotency/idempotency-record.ts'
import { type BodyFormat, jsonFormat, ndjsonFormat } from '../intake/body.ts'
import type { ParsedRequest } from '../intake/intake.ts'
import { readBody } from '../intake/read-body.ts'
import { logsOperation } from '../openapi/operations.ts'
import { OTLP_PROTOBUF, rejectOtlp } from '../protocols/otlp/answers.ts'
import { readJson, readProtobuf } from '../protocols/otlp/otlp.ts'
import type { Reading } from '../protocols/protocol.ts'
import type { AnswerCount } from '../metrics/request-counts.ts'
import { sendAnswer } from '../answer.ts'
import type { RequestOrigin } from '../traces/request-traces.ts'
import { acknowledge, noteReplay } from './acknowledgement.ts'
import { admit } from './admission.ts'
import { chargeUnknownLength, pay } from './charges.ts'
import { identify } from './identify.ts'
import type { IntakeDependencies } from './intake-dependencies.ts'
import { rejectOtherMethods } from './other-methods.ts'
import type { IntakeRequest } from './request-state.ts'
import { takeRecords } from './take-records.ts'
import { withBody } from './with-body.ts'

/** The accepted media types of entries: those that Fluent Bit, Fluentd, Logstash and Vector send. */
const formats: Readonly<Record<string, BodyFormat>> = {
  'application/json': jsonFormat,
  'application/x-ndjson': ndjsonFormat,
}

/** A request whose body has arrived. */
interface ReceivedRequest {
  /** Decoded. */
  readonly body: Buffer
  readonly format: BodyFormat
  readonly stamp: RequestStamp
  readonly identity: RequestIdentity | undefined
}

/**
 * `POST` of an entry or a batch request: admitted before its body is read, then received, parsed, charged and stored.
 * Acknowledged when Redis has it.
 */
export function logsRoute(app: FastifyInstance, dependencies: IntakeDependencies): void {
  const { bodies, counts } = dependencies
  // The body arrives as bytes. The intake decides whether they are UTF-8, JSON and entries.
  app.addContentTypeParser([...Object.keys(formats), OTLP_PROTOBUF], (request, payload, done) => {
    readBody(request, payload, bodies, done)
  })

  for (const url of logsPaths) {
    rejectOtherMethods(app, url, ['POST'])
    const accepted = counts.countOf(url, 'POST', 202)
    const countOf = (status: number): AnswerCount => counts.countOf(url, 'POST', status)
    app.post<{ Body: Buffer | undefined }>(url, {
      config: { reject: rejectOtlp, operation: logsOperation(url) },
      onRequest: (request, reply) => admit(request, reply, dependencies, request.headers.authorization),
      errorHandler: chargeUnknownLength,
      handler: (request, reply) =>
        withBody(request, reply, dependencies, async (body) => {
          const hashed = identify(request, body, dependencies.turns)
          const identity = hashed instanceof Promise ? await hashed : hashed
          const take = async (reading: Reading): Promise<FastifyReply> =>
            sendAnswer(
              reply,
              await takeRecords(reading, body, request, reply, countOf, dependencies, identity),
            )
          if (request.mediaType === OTLP_PROTOBUF) return take(readProtobuf(body))
          const received = receive(request, body, identity, dependencies.wallMs())
          const parsed =
            scanAndCharge(request, received, dependencies) ??
            (await parseAndCharge(request, received, dependencies))
          if (parsed === undefined) return take(readJson(body))
          if (parsed.charged !== undefined) await parsed.charged
          if (request.allowance !== null) void reply.header('ratelimit', request.allowance.state)
          void reply.code(202).type('application/json; charset=utf-8')
          if (parsed.stored !== undefined) {
            await parsed.stored
            acknowledge(accepted, parsed.rows, request, counts)
            return parsed.answer
          }
          const { answer, isReplay } = await store(parsed.request, received, request, dependencies)
          if (isReplay) {
            noteReplay(request, counts)
            void reply.header('idempotency-replayed', 'true')
          }
          acknowledge(accepted, isReplay ? 0 : parsed.request.rows.count, request, counts)
          return answer
        }),
    })
  }
}

function receive(
  { project, mediaType = '' }: IntakeRequest,
  body: Buffer,
  identity: RequestIdentity | undefined,
  receivedAtMs: number,
): ReceivedRequest {
  if (project === null) throw new Error('the request is not authenticated')
  const { id: projectId, retentionDays } = project
  return {
    body,
    format: formats[mediaType] ?? jsonFormat,
    stamp: { projectId, retentionDays, receivedAtMs },
    identity,
  }
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
  request: IntakeRequest,
  { body, format, stamp, identity }: ReceivedRequest,
  { intake, writer }: IntakeDependencies,
): ChargedRequest | undefined {
  const { allowance, paid } = request
  return intake.scan(body, stamp, format, (parsed): ChargedRequest => {
    // A request without entries costs as much work as one with an entry.
    const cost = { entries: Math.max(1, parsed.entries), bytes: body.length }
    const charged = paid === null ? allowance?.take(cost) : allowance?.raise(paid, cost)
    if (charged === undefined && identity === undefined)
      return {
        charged,
        answer: parsed.answer,
        rows: parsed.rows.count,
        stored: writeRows(parsed.rows, request, writer),
      }
    return { charged, request: { ...parsed, rows: parsed.rows.copy() } }
  })
}

/**
 * Charges one entry and the bytes of a body, then parses it, then charges the other entries: the work is paid for, whatever comes of it.
 *
 * @returns undefined if the body is an OTLP request
 * @throws Problem
 */
async function parseAndCharge(
  request: IntakeRequest,
  { body, format, stamp }: ReceivedRequest,
  { intake }: IntakeDependencies,
): Promise<ChargedRequest | undefined> {
  const cost = { entries: 1, bytes: body.length }
  await pay(request, cost)
  const parsed = await intake.parse(body, stamp, format)
  if (parsed === undefined) return undefined
  if (parsed.entries > 1) await pay(request, { ...cost, entries: parsed.entries })
  return { charged: undefined, request: parsed }
}

async function store(
  parsed: ParsedRequest<Owned>,
  { stamp, identity }: ReceivedRequest,
  request: IntakeRequest,
  { writer, idempotency }: IntakeDependencies,
): Promise<{ readonly answer: string; readonly isReplay: boolean }> {
  if (identity === undefined) {
    await writeRows(parsed.rows, request, writer)
    return { answer: parsed.answer, isReplay: false }
  }
  return idempotency.write({
    projectId: stamp.projectId,
    ...identity,
    parsed,
    requestId: request.id,
    span: request.span,
  })
}

function writeRows<Scope>(rows: Rows<Scope>, origin: RequestOrigin, writer: ChunkWriter): Promise<void> {
  return rows.count > 0 ? writer.write(rows, origin) : Promise.resolve()
}
