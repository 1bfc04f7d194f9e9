import type { FastifyReply } from 'fastify'
import type { Answer } from '../answer.ts'
import { logsPaths } from '../http-contract.ts'
import { identifyRequest } from '../idempotency/idempotency-record.ts'
import type { AnswerCount } from '../metrics/request-counts.ts'
import type { Reading } from '../protocols/protocol.ts'
import { acknowledge, noteReplay } from './acknowledgement.ts'
import { pay } from './charges.ts'
import type { IntakeDependencies } from './intake-dependencies.ts'
import type { IntakeRequest } from './request-state.ts'
import { storePieces } from './store-pieces.ts'

/**
 * Reads the records of a request, charges and stores them.
 *
 * @param countOf the count of answers with a status
 * @returns the answer, once everything is stored
 * @throws Problem, and the errors of the writers
 */
export async function takeRecords(
  reading: Reading,
  body: Buffer,
  request: IntakeRequest,
  reply: FastifyReply,
  countOf: (status: number) => AnswerCount,
  dependencies: IntakeDependencies,
): Promise<Answer> {
  const { project, headers, allowance, url } = request
  const { bodies, counts, intake, wallMs } = dependencies
  if (project === null) throw new Error('the request is not authenticated')
  const { id: projectId, retentionDays } = project
  const identity = identifyRequest(headers, body, logsPaths.includes(url) ? '' : url)
  const stamp = { projectId, retentionDays, receivedAtMs: wallMs() }
  const cost = { entries: 1, bytes: body.length }
  await pay(request, cost)
  const { pieces, ...outcome } = await intake.readRecords(reading.records(), body, stamp, (bytes) => {
    if (!bodies.hold(request, bytes)) throw bodies.reject(request)
  })
  if (outcome.records > 1) await pay(request, { ...cost, entries: outcome.records })
  if (allowance !== null) void reply.header('ratelimit', allowance.state)
  const stored = await storePieces(pieces, request, projectId, identity, dependencies)
  const answer = reading.answer(outcome)
  if (identity !== undefined && stored === 0 && pieces.length > 0) {
    noteReplay(request, counts)
    void reply.header('idempotency-replayed', 'true')
  }
  acknowledge(countOf(answer.status), stored, request, counts)
  return answer
}
