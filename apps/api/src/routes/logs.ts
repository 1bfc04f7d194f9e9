import type { FastifyInstance } from 'fastify'
import type { Answer } from '../answer.ts'
import { logsPaths } from '../http-contract.ts'
import type { AnswerCount } from '../metrics/api-metrics.ts'
import { OTLP_PROTOBUF, readJson, readProtobuf, rejectOtlp } from '../protocols/otlp/otlp.ts'
import type { Admission, IntakeDependencies } from './admission.ts'
import { rejectOtherMethods } from './protocols.ts'
import { receive } from './receive.ts'
import { takeRecords } from './take-records.ts'

const JSON_TYPE = 'application/json'
const NDJSON_TYPE = 'application/x-ndjson'
const mediaTypes = [JSON_TYPE, NDJSON_TYPE, OTLP_PROTOBUF]

/**
 * `POST` of an entry or a batch request: admitted before its body is read, then received and charged for its bytes, then parsed, charged
 * for its entries, and stored. Acknowledged when Redis has it.
 */
export function logsRoute(app: FastifyInstance, dependencies: IntakeDependencies): void {
  const { counts } = dependencies
  for (const url of logsPaths) {
    rejectOtherMethods(app, url, ['POST'])
    const accepted = counts.countOf(url, 'POST', 202)
    const countOf = (status: number): AnswerCount =>
      status === 202 ? accepted : counts.countOf(url, 'POST', status)
    app.post(url, { config: { reject: rejectOtlp } }, (request, reply) =>
      receive(
        request,
        reply,
        { authorization: request.headers.authorization, mediaTypes },
        dependencies,
        (body, admission) =>
          request.mediaType === OTLP_PROTOBUF
            ? takeRecords(readProtobuf(body), body, admission, countOf)
            : takeEntries(body, request.mediaType === NDJSON_TYPE, admission, countOf),
      ),
    )
  }
}

/** Stores the entries of a body, or its records if it is OTLP. @returns the response; the JSON of a 202 for entries */
async function takeEntries(
  body: Buffer,
  isNdjson: boolean,
  admission: Admission,
  countOf: (status: number) => AnswerCount,
): Promise<string | Answer> {
  const { held, identity, project, reply, span } = admission
  const { intake, writer, writeOnce } = admission.dependencies
  const read = intake.readEntries(body, admission.stamp(), isNdjson, (parsed) => {
    const { entries, rows, answer } = parsed
    const charged = admission.chargeEntries(entries)
    if (charged !== undefined || identity !== undefined)
      return { charged, parsed: { ...parsed, rows: rows.copy() } }
    // Without a wait for Redis and without a record, the rows go to the writer at once, straight from the scanner's memory.
    held.hold(rows.byteLength)
    return { answer, rows: rows.count, stored: rows.count > 0 ? writer.write(rows, span) : undefined }
  })
  if (read === undefined) return takeRecords(readJson(body), body, admission, countOf)
  void reply.code(202).type('application/json; charset=utf-8')
  const accepted = countOf(202)
  if (read.parsed === undefined) {
    await read.stored
    admission.acknowledge(accepted, read.rows)
    return read.answer
  }
  const { charged, parsed } = read
  if (charged !== undefined) await charged
  held.hold(parsed.rows.byteLength)
  if (identity === undefined) {
    if (parsed.rows.count > 0) await writer.write(parsed.rows, span)
    admission.acknowledge(accepted, parsed.rows.count)
    return parsed.answer
  }
  const { answer, isReplay } = await writeOnce({ projectId: project.id, ...identity, parsed, span })
  if (isReplay) admission.markReplay()
  admission.acknowledge(accepted, isReplay ? 0 : parsed.rows.count)
  return answer
}
