import type { FastifyRequest } from 'fastify'
import type { RequestIdentity } from '../idempotency/idempotency-record.ts'
import type { Piece } from '../intake/records.ts'
import { Problem, problems } from '../problems.ts'
import type { IntakeDependencies } from './intake-dependencies.ts'

/** Pieces of one request that are written at a time. More would only make other requests wait. */
const PIECES_IN_FLIGHT_MAX = 4

/**
 * Stores all pieces of a request. With an idempotency key, each piece has a record of its own, so a retry stores only those that are
 * not stored yet. The first piece is stored before the others: if it is rejected, nothing is stored.
 *
 * @returns the number of rows that were stored now
 * @throws Problem `queue_unavailable` if some pieces are stored and others are not; otherwise the error of the first piece
 */
export async function storePieces(
  pieces: readonly Piece[],
  request: FastifyRequest,
  projectId: string,
  identity: RequestIdentity | undefined,
  { writer, idempotency }: Pick<IntakeDependencies, 'writer' | 'idempotency'>,
): Promise<number> {
  const [first, ...rest] = pieces
  if (first === undefined) return 0
  let stored = 0

  async function store({ rows, start, end }: Piece): Promise<void> {
    if (identity === undefined) {
      await writer.write(rows, request)
      stored += rows.count
      return
    }
    const { key, digest } = identity
    const { isReplay } = await idempotency.write({
      projectId,
      // The keys of clients have no spaces, so no client can send the key of a piece.
      key: start === first?.start ? key : `${key} ${start}-${end}`,
      digest,
      parsed: { entries: end - start, rows, answer: '' },
      requestId: request.id,
      span: request.span,
    })
    if (!isReplay) stored += rows.count
  }

  await store(first)
  let isFailed = false
  async function storeRest(): Promise<void> {
    for (let piece = rest.shift(); piece !== undefined && !isFailed; piece = rest.shift()) {
      try {
        await store(piece)
      } catch {
        isFailed = true
      }
    }
  }
  await Promise.all(Array.from({ length: PIECES_IN_FLIGHT_MAX }, storeRest))
  if (isFailed) throw partlyStored()
  return stored
}

function partlyStored(): Problem {
  return new Problem('queue_unavailable', problems.queue_unavailable.detail, {
    headers: { 'retry-after': '1' },
  })
}
