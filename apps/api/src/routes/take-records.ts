import type { Answer } from '../answer.ts'
import type { ReadRecords, ScanRecords, SourceRecord } from '../intake/records.ts'
import type { AnswerCount } from '../metrics/request-counts.ts'
import { RECORD_BYTES } from '../overload/body-budget.ts'
import type { Reading } from '../protocols/protocol.ts'
import type { Admission, IntakeDependencies } from './admission.ts'
import { storePieces } from './store-pieces.ts'

/** A request of fewer records takes less memory than its connection. */
const RECORDS_PER_HOLD = 64

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
  const { id, identity, project, reply } = admission
  const { bodies, counts, turns } = dependencies
  const { pieces, ...outcome } = await readAndCharge(reading, body, admission, dependencies)

  const held = bodies.open(project.id)
  try {
    const answer = await reading.answer(outcome, {
      identity: identity === undefined ? id : `${identity.key} ${identity.digest}`,
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

/** Reads the records of a body, and charges them. If the body is rejected, those that were read are charged. @throws Problem */
async function readAndCharge(
  reading: Reading,
  body: Buffer,
  admission: Admission,
  { intake, wallMs }: IntakeDependencies,
): Promise<ReadRecords> {
  const { held, project } = admission
  const stamp = { projectId: project.id, retentionDays: project.retentionDays, receivedAtMs: wallMs() }
  let seen = 0
  let single = 0
  function* count(scan: ScanRecords): Generator<SourceRecord | undefined> {
    for (const record of reading.records(scan)) {
      if (record !== undefined && 'rows' in record) seen += record.rows.count
      else if (record !== undefined) {
        seen += 1
        single += 1
        if (single % RECORDS_PER_HOLD === 0) held.hold(RECORDS_PER_HOLD * RECORD_BYTES)
      }
      yield record
    }
  }
  let read: ReadRecords
  try {
    read = await intake.readRecords(count, body, stamp, (bytes) => held.hold(bytes))
  } catch (error) {
    if (seen > 1) admission.chargeDone({ entries: seen, bytes: body.length })
    throw error
  }
  await admission.chargeEntries(read.records)
  return read
}
