import type { FastifyRequest } from 'fastify'
import type { Piece } from '../intake/records.ts'
import { Problem, problems } from '../problems.ts'
import type { IntakeDependencies } from './intake-dependencies.ts'

/** What makes a request a repetition of an earlier one. */
export interface RequestIdentity {
  readonly projectId: string
  readonly idempotencyKey: string
  /** From `digestRequest`. */
  readonly digest: string
}

/**
 * Stores all pieces of a request. With an idempotency key, each piece has a record of its own, so a retry stores only those that are
 * not stored yet. The first piece then is stored before the others: it has the key itself, so another body with this key is noticed
 * before anything of it is stored.
 *
 * @returns the number of rows that were stored now
 * @throws Problem `queue_unavailable` if some pieces are stored and others are not; otherwise the first error of a piece
 */
export async function storePieces(
  pieces: readonly Piece[],
  request: FastifyRequest,
  identity: RequestIdentity | undefined,
  { writer, idempotency }: Pick<IntakeDependencies, 'writer' | 'idempotency'>,
): Promise<number> {
  async function store({ rows, start, end }: Piece): Promise<number> {
    if (identity === undefined) {
      await writer.write(rows, request)
      return rows.count
    }
    const { projectId, idempotencyKey, digest } = identity
    const { isReplay } = await idempotency.write({
      projectId,
      // A key never contains a space, so no client can send the key of a further piece.
      key: start === 0 ? idempotencyKey : `${idempotencyKey} ${start}-${end}`,
      digest,
      parsed: { entries: end - start, rows, answer: '' },
      requestId: request.id,
      span: request.span,
    })
    return isReplay ? 0 : rows.count
  }

  const [first, ...others] = pieces
  if (first === undefined) return 0
  if (identity === undefined) return sum(await Promise.allSettled(pieces.map(store)))
  const storedFirst = await store(first)
  const results = await Promise.allSettled(others.map(store))
  return sum([{ status: 'fulfilled', value: storedFirst }, ...results])
}

/** @throws Problem, or the error of the first piece if none is stored */
function sum(results: readonly PromiseSettledResult<number>[]): number {
  let rows = 0
  let stored = 0
  for (const result of results) {
    if (result.status === 'rejected') continue
    rows += result.value
    stored += 1
  }
  if (stored === results.length) return rows
  if (stored > 0) throw partlyStored()
  throw results.find((result) => result.status === 'rejected')?.reason
}

function partlyStored(): Problem {
  return new Problem('queue_unavailable', problems.queue_unavailable.detail, {
    headers: { 'retry-after': '1' },
  })
}
