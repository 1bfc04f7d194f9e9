import { QueueFullError, QueueUnavailableError } from '@sluice/queue'
import { type Piece, RejectedBody, type ScannedRecords } from '@sluice/row-scanner'
import type { Answer } from '../answer.ts'
import { digestPiece } from '../idempotency/idempotency.ts'
import type { AnswerCount } from '../metrics/api-metrics.ts'
import { RECORD_BYTES } from '../overload/body-budget.ts'
import type { OverloadMonitor } from '../overload/overload-monitor.ts'
import { Problem, retryAfter } from '../problems.ts'
import type { Reading } from '../protocols/protocol.ts'
import type { Admission } from './admission.ts'

/** Pieces of one request that are written at a time. More would only make other requests wait. */
const PIECES_IN_FLIGHT_MAX = 4
const RETRY_AFTER_S = 1
const PARTLY_STORED =
  'A part of the request is stored, and another part is not. Retry with the same idempotency key.'

/** Reads the records of a request, charges and stores them. If the body is rejected, those that were read are charged. @throws Problem */
export async function takeRecords(
  reading: Reading,
  body: Buffer,
  admission: Admission,
  countOf: (status: number) => AnswerCount,
): Promise<Answer> {
  const { held, identity, project, dependencies } = admission
  let read: ScannedRecords
  try {
    read = dependencies.intake.readRecords(reading.read, admission.stamp(), reading.rejections)
  } catch (error) {
    const cause = error instanceof Problem ? error.cause : undefined
    if (cause instanceof RejectedBody && cause.records > 1)
      admission.chargeDone({ entries: cause.records, bytes: body.length })
    throw error
  }
  held.hold(read.records * RECORD_BYTES)
  for (const { rows } of read.pieces) held.hold(rows.byteLength)
  await admission.chargeEntries(read.records)
  const answer = await reading.answer(read, {
    hold: (bytes) => held.hold(bytes),
    nextTurn: () => dependencies.turns.next(project.id),
  })
  const stored = await storePieces(read.pieces, admission)
  if (identity !== undefined && stored === 0 && read.pieces.length > 0) admission.markReplay()
  admission.acknowledge(countOf(answer.status), stored)
  return answer
}

/**
 * Stores all pieces of a request. With an idempotency key, each piece has a record of its own, so a retry stores only those that are
 * not stored yet. The first piece is stored before the others: if it is rejected, nothing is stored by this attempt.
 *
 * @throws the error of the first piece; Problem `queue_unavailable` if another one is not stored
 */
async function storePieces(pieces: readonly Piece[], admission: Admission): Promise<number> {
  const { identity, project, span } = admission
  const { writer, writeOnce, overload } = admission.dependencies
  const [first, ...rest] = pieces
  if (first === undefined) return 0
  let stored = 0

  async function store({ rows, start, end }: Piece): Promise<void> {
    if (identity === undefined) {
      await writer.write(rows, span)
      stored += rows.count
      return
    }
    const { key, digest } = identity
    const { isReplay } = await writeOnce({
      projectId: project.id,
      // The keys of clients have no spaces, so no client can send the key of a piece.
      key: start === first?.start ? key : `${key} ${start}-${end}`,
      digest: pieces.length === 1 ? digest : digestPiece(digest, start, end),
      parsed: { entries: end - start, rows, answer: '' },
      span,
    })
    if (!isReplay) stored += rows.count
  }

  await store(first)
  const left = rest.values()
  async function storeRest(): Promise<void> {
    for (const piece of left) await store(piece)
  }
  const ends = await Promise.allSettled(Array.from({ length: PIECES_IN_FLIGHT_MAX }, storeRest))
  const failed = ends.find((end) => end.status === 'rejected')
  if (failed !== undefined) throw partlyStored(failed.reason, overload)
  return stored
}

/** The response to a request whose entries could not be stored. Other errors are returned as they are. */
export function storeProblem(error: unknown, overload: Pick<OverloadMonitor, 'reject'>): unknown {
  if (error instanceof QueueFullError) return overload.reject('redis_memory')
  return error instanceof QueueUnavailableError ? retryAfter('queue_unavailable', RETRY_AFTER_S) : error
}

/**
 * The response to a request if a part of it is stored, whatever stopped the rest: every other problem says that nothing is stored. A retry with
 * the idempotency key stores the rest. It waits as long as the cause asks for.
 */
function partlyStored(error: unknown, overload: Pick<OverloadMonitor, 'reject'>): unknown {
  const problem = storeProblem(error, overload)
  return problem instanceof Problem
    ? retryAfter('queue_unavailable', problem.headers['retry-after'] ?? RETRY_AFTER_S, PARTLY_STORED)
    : problem
}
