import { QueueFullError, QueueUnavailableError } from '@sluice/queue'
import type { Piece } from '@sluice/row-scanner'
import { digestPiece } from '../idempotency/idempotency.ts'
import type { OverloadMonitor } from '../overload/overload-monitor.ts'
import { Problem, retryAfter } from '../problems.ts'
import type { Admission, IntakeDependencies } from './admission.ts'

/** Pieces of one request that are written at a time. More would only make other requests wait. */
const PIECES_IN_FLIGHT_MAX = 4
const RETRY_AFTER_S = 1
const PARTLY_STORED =
  'A part of the request is stored, and another part is not. Retry with the same idempotency key.'

/**
 * Stores all pieces of a request. With an idempotency key, each piece has a record of its own, so a retry stores only those that are
 * not stored yet. The first piece is stored before the others: if it is rejected, nothing is stored by this attempt.
 *
 * @returns the number of rows that were stored now
 * @throws the error of the first piece; Problem `queue_unavailable` if another one is not stored
 */
export async function storePieces(
  pieces: readonly Piece[],
  admission: Admission,
  { writer, writeOnce, overload }: Pick<IntakeDependencies, 'writer' | 'writeOnce' | 'overload'>,
): Promise<number> {
  const { identity, project } = admission
  const [first, ...rest] = pieces
  if (first === undefined) return 0
  let stored = 0

  async function store({ rows, start, end }: Piece): Promise<void> {
    if (identity === undefined) {
      await writer.write(rows, admission.span)
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
      span: admission.span,
    })
    if (!isReplay) stored += rows.count
  }

  await store(first)
  const errors: unknown[] = []
  async function storeRest(): Promise<void> {
    for (let piece = rest.shift(); piece !== undefined && errors.length === 0; piece = rest.shift()) {
      try {
        await store(piece)
      } catch (error) {
        errors.push(error)
      }
    }
  }
  await Promise.all(Array.from({ length: PIECES_IN_FLIGHT_MAX }, storeRest))
  if (errors.length > 0) throw partlyStored(errors[0], overload)
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
 *
 * @returns other errors as they are
 */
function partlyStored(error: unknown, overload: Pick<OverloadMonitor, 'reject'>): unknown {
  const problem = storeProblem(error, overload)
  return problem instanceof Problem
    ? retryAfter('queue_unavailable', problem.headers['retry-after'] ?? RETRY_AFTER_S, PARTLY_STORED)
    : problem
}
