import type { FastifyRequest } from 'fastify'
import { digestPiece, type RequestIdentity } from '../idempotency/idempotency-record.ts'
import type { Piece } from '../intake/records.ts'
import type { IntakeDependencies } from './intake-dependencies.ts'
import { partlyStored } from './store-problem.ts'

/** Pieces of one request that are written at a time. More would only make other requests wait. */
const PIECES_IN_FLIGHT_MAX = 4

/**
 * Stores all pieces of a request. With an idempotency key, each piece has a record of its own, so a retry stores only those that are
 * not stored yet. The first piece is stored before the others: if it is rejected, nothing is stored by this attempt.
 *
 * @returns the number of rows that were stored now
 * @throws the error of the first piece; Problem `queue_unavailable` if another one is not stored
 */
export async function storePieces(
  pieces: readonly Piece[],
  request: FastifyRequest,
  projectId: string,
  identity: RequestIdentity | undefined,
  { writer, idempotency, overload }: Pick<IntakeDependencies, 'writer' | 'idempotency' | 'overload'>,
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
      digest: pieces.length === 1 ? digest : digestPiece(digest, start, end),
      parsed: { entries: end - start, rows, answer: '' },
      origin: request,
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
