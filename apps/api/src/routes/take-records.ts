import { RejectedBody, type ScannedRecords } from '@sluice/row-scanner'
import type { Answer } from '../answer.ts'
import type { AnswerCount } from '../metrics/request-counts.ts'
import { RECORD_BYTES } from '../overload/body-budget.ts'
import { Problem } from '../problems.ts'
import type { Reading } from '../protocols/protocol.ts'
import type { Admission, IntakeDependencies } from './admission.ts'
import { storePieces } from './store-pieces.ts'

/**
 * Reads the records of a request, charges and stores them.
 *
 * @param countOf the count of responses with a status
 * @returns the response, once everything is stored
 * @throws Problem, and the errors of the writers
 */
export async function takeRecords(
  reading: Reading,
  body: Buffer,
  admission: Admission,
  countOf: (status: number) => AnswerCount,
  dependencies: IntakeDependencies,
): Promise<Answer> {
  const { identity, project, reply } = admission
  const { bodies, counts, turns } = dependencies
  const { pieces, ...outcome } = await readAndCharge(reading, body, admission, dependencies)

  const held = bodies.open(project.id)
  try {
    const answer = await reading.answer(outcome, {
      hold: (bytes) => held.hold(bytes),
      nextTurn: () => turns.next(project.id),
    })
    const stored = await storePieces(pieces, admission, dependencies)
    if (identity !== undefined && stored === 0 && pieces.length > 0) admission.markReplay(counts)
    admission.acknowledge(countOf(answer.status), stored, counts)
    held.releaseAfter(reply.raw)
    return answer
  } catch (error) {
    held.release()
    throw error
  }
}

/** Reads the records of a body, holds their rows, and charges them. If the body is rejected, those that were read are charged. @throws Problem */
async function readAndCharge(
  reading: Reading,
  body: Buffer,
  admission: Admission,
  { intake, wallMs }: IntakeDependencies,
): Promise<ScannedRecords> {
  const { held, project } = admission
  const stamp = { projectId: project.id, retentionDays: project.retentionDays, receivedAtMs: wallMs() }
  let read: ScannedRecords
  try {
    read = intake.readRecords(reading.read, stamp, reading.rejections)
  } catch (error) {
    const cause = error instanceof Problem ? error.cause : undefined
    if (cause instanceof RejectedBody && cause.records > 1)
      admission.chargeDone({ entries: cause.records, bytes: body.length })
    throw error
  }
  held.hold(read.records * RECORD_BYTES)
  for (const { rows } of read.pieces) held.hold(rows.byteLength)
  await admission.chargeEntries(read.records)
  return read
}
