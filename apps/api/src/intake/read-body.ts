import { limits } from '@sluice/schema'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { BodyBudget, BodyHolder } from '../overload/body-budget.ts'
import { Problem, problems } from '../problems.ts'

type BodyRequest = BodyHolder & { readonly headers: IncomingHttpHeaders }

/** Why a body must not be sent, as far as its headers show it. */
export function rejectBody(request: BodyRequest, budget: BodyBudget): Problem | undefined {
  const declared = declaredBytes(request) ?? 0
  if (declared > limits.bodyBytesMax) return tooLarge()
  return budget.fits(request, declared) ? undefined : budget.reject(request)
}

/**
 * Reads a body into one buffer. Its bytes are held in the budget until `BodyBudget.release`: at once if the length is declared,
 * otherwise as they arrive.
 *
 * @param done called once, with the body, or with a Problem or the error of the connection. Then nothing is held
 */
export function readBody(
  request: BodyRequest,
  payload: IncomingMessage,
  budget: BodyBudget,
  done: (error: Error | null, body?: Buffer) => void,
): void {
  const declared = declaredBytes(request)
  const chunks: Buffer[] = []
  let bytes = 0

  function onData(chunk: Buffer): void {
    bytes += chunk.length
    chunks.push(chunk)
    if (declared !== undefined) return
    if (bytes > limits.bodyBytesMax) finish(tooLarge())
    else if (!budget.hold(request, chunk.length)) finish(budget.reject(request))
  }

  function onEnd(): void {
    const isComplete = declared === undefined || declared === bytes
    finish(
      isComplete
        ? null
        : new Problem('bad_request', 'The length of the body differs from the Content-Length header.'),
    )
  }

  function finish(error: Error | null): void {
    payload.off('data', onData)
    payload.off('end', onEnd)
    payload.off('error', finish)
    if (error === null) {
      const [only] = chunks
      done(null, chunks.length === 1 ? only : Buffer.concat(chunks, bytes))
    } else {
      budget.release(request)
      done(error)
    }
  }

  const problem = rejectBody(request, budget)
  if (problem !== undefined) done(problem)
  // The client disconnected while its key was looked up. There are no more events.
  else if (payload.destroyed) done(new Problem('bad_request', 'The body is incomplete.'))
  else {
    budget.hold(request, declared ?? 0)
    payload.on('data', onData)
    payload.on('end', onEnd)
    payload.on('error', finish)
  }
}

/** Undefined for a body in chunks. */
function declaredBytes({ headers }: BodyRequest): number | undefined {
  const length = headers['content-length']
  return length === undefined ? undefined : Number(length)
}

function tooLarge(): Problem {
  return new Problem('body_too_large', problems.body_too_large.detail)
}
