import { limits } from '@sluice/schema'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { HeldBytes } from '../overload/body-budget.ts'
import { Problem, problems } from '../problems.ts'

/** Rejects a body that must not be sent, as far as its headers show it. @throws Problem */
export function checkLength(headers: IncomingHttpHeaders, held: HeldBytes): void {
  const declared = declaredBytes(headers) ?? 0
  if (declared > limits.bodyBytesMax) throw tooLarge()
  held.check(declared)
}

/**
 * Reads a body into one buffer. Its bytes are held until `HeldBytes.release`: at once if the length is declared,
 * otherwise as they arrive.
 *
 * @param done called once, with the body, or with a Problem or the error of the connection. Then nothing is held
 */
export function readBody(
  headers: IncomingHttpHeaders,
  payload: IncomingMessage,
  held: HeldBytes,
  done: (error: Error | null, body?: Buffer) => void,
): void {
  const declared = declaredBytes(headers)
  const chunks: Buffer[] = []
  let bytes = 0

  function onData(chunk: Buffer): void {
    bytes += chunk.length
    chunks.push(chunk)
    if (declared !== undefined) return
    try {
      if (bytes > limits.bodyBytesMax) throw tooLarge()
      held.hold(chunk.length)
    } catch (error) {
      finish(error as Problem)
    }
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
      held.release()
      done(error)
    }
  }

  try {
    checkLength(headers, held)
    // The client disconnected while its key was looked up. There are no more events.
    if (payload.destroyed) throw new Problem('bad_request', 'The body is incomplete.')
    held.hold(declared ?? 0)
  } catch (error) {
    done(error as Problem)
    return
  }
  payload.on('data', onData)
  payload.on('end', onEnd)
  payload.on('error', finish)
}

/** Undefined for a body in chunks. */
function declaredBytes(headers: IncomingHttpHeaders): number | undefined {
  const length = headers['content-length']
  return length === undefined ? undefined : Number(length)
}

function tooLarge(): Problem {
  return new Problem('body_too_large', problems.body_too_large.detail)
}
