import type { Project } from '@sluice/projects'
import type { FastifyReply } from 'fastify'
import type { Answer } from '../answer.ts'
import type { RequestIdentity } from '../idempotency/idempotency-record.ts'
import type { ReadRecords, ScanRecords, SourceRecord } from '../intake/records.ts'
import type { AnswerCount } from '../metrics/request-counts.ts'
import { RECORD_BYTES } from '../overload/body-budget.ts'
import type { Reading } from '../protocols/protocol.ts'
import { acknowledge, noteReplay } from './acknowledgement.ts'
import { chargeUpTo, pay } from './charges.ts'
import { HeldAnswer } from './held-answer.ts'
import { identify } from './identify.ts'
import type { IntakeDependencies } from './intake-dependencies.ts'
import type { IntakeRequest } from './request-state.ts'
import { storePieces } from './store-pieces.ts'

/** A request of fewer records takes less memory than its connection. */
const RECORDS_PER_HOLD = 64

/**
 * Reads the records of a request, charges and stores them.
 *
 * @param countOf the count of answers with a status
 * @param known the identity of the request, if its body has been hashed
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
  known?: RequestIdentity,
): Promise<Answer> {
  const { project, allowance } = request
  const { bodies, counts, turns } = dependencies
  if (project === null) throw new Error('the request is not authenticated')
  const hashed = known ?? identify(request, body, turns)
  const identity = hashed instanceof Promise ? await hashed : hashed
  const { pieces, ...outcome } = await readAndCharge(reading, body, project, request, dependencies)
  if (allowance !== null) void reply.header('ratelimit', allowance.state)

  const held = new HeldAnswer(project, bodies)
  try {
    const answer = await reading.answer(outcome, {
      identity: identity === undefined ? request.id : `${identity.key} ${identity.digest}`,
      hold: (bytes) => held.hold(bytes),
      nextTurn: () => turns.next(project.id),
    })
    const stored = await storePieces(pieces, request, project.id, identity, dependencies)
    if (identity !== undefined && stored === 0 && pieces.length > 0) {
      noteReplay(request, counts)
      void reply.header('idempotency-replayed', 'true')
    }
    acknowledge(countOf(answer.status), stored, request, counts)
    held.releaseAfter(reply.raw)
    return answer
  } catch (error) {
    held.release()
    throw error
  }
}

/**
 * Charges one entry and the bytes of a body, then reads its records, then charges the other ones: the work is paid for, whatever comes of
 * it. If the body is rejected, those that were read are charged.
 *
 * @throws Problem
 */
async function readAndCharge(
  reading: Reading,
  body: Buffer,
  { id: projectId, retentionDays }: Project,
  request: IntakeRequest,
  { bodies, intake, wallMs }: IntakeDependencies,
): Promise<ReadRecords> {
  const stamp = { projectId, retentionDays, receivedAtMs: wallMs() }
  const cost = { entries: 1, bytes: body.length }
  await pay(request, cost)
  function hold(bytes: number): void {
    if (!bodies.hold(request, bytes)) throw bodies.reject(request)
  }
  let seen = 0
  let single = 0
  function* count(scan: ScanRecords): Generator<SourceRecord | undefined> {
    for (const record of reading.records(scan)) {
      if (record !== undefined && 'rows' in record) seen += record.rows.count
      else if (record !== undefined) {
        seen += 1
        single += 1
        if (single % RECORDS_PER_HOLD === 0) hold(RECORDS_PER_HOLD * RECORD_BYTES)
      }
      yield record
    }
  }
  let read: ReadRecords
  try {
    read = await intake.readRecords(count, body, stamp, hold)
  } catch (error) {
    if (seen > 1) chargeUpTo({ ...cost, entries: seen }, request)
    throw error
  }
  if (read.records > 1) await pay(request, { ...cost, entries: read.records })
  return read
}
