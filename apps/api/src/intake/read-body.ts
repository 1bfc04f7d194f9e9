import { limits } from '@sluice/schema'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { HeldBytes } from '../overload/body-budget.ts'
import { Problem } from '../problems.ts'

/** Rejects a body that must not be sent, as far as its headers show it. @throws Problem */
export function checkLength(headers: IncomingHttpHeaders, held: HeldBytes): void {
  const declared = Number(headers['content-length'] ?? 0)
  if (declared > limits.bodyBytesMax) throw new Problem('body_too_large')
  held.check(declared)
}

/**
 * Reads a body whose length was checked into one buffer. Its bytes are held until `HeldBytes.release`: at once if the length is declared,
 * otherwise as they arrive.
 *
 * @returns the body itself if all of it has arrived
 * @throws Problem, or rejects with it or the error of the connection
 */
export function readBody(payload: IncomingMessage, held: HeldBytes): Buffer | Promise<Buffer> {
  const { 'content-length': declared } = payload.headers
  // The client disconnected while its key was looked up. There are no more events.
  if (payload.destroyed) throw new Problem('bad_request', 'The body is incomplete.')
  if (declared !== undefined) {
    held.hold(Number(declared))
    if (payload.readableLength === Number(declared)) {
      // Without the length, Node would return the first of several parts.
      const body = payload.read(Number(declared)) as Buffer | null
      // The stream ends only when it is read to its end.
      payload.resume()
      return body ?? Buffer.alloc(0)
    }
  }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0

    function onData(chunk: Buffer): void {
      bytes += chunk.length
      chunks.push(chunk)
      if (declared !== undefined) return
      try {
        if (bytes > limits.bodyBytesMax) throw new Problem('body_too_large')
        held.hold(chunk.length)
      } catch (error) {
        finish(error as Problem)
      }
    }

    function finish(error?: Error): void {
      payload.off('data', onData).off('end', finish).off('error', finish)
      const [only] = chunks
      if (error !== undefined) reject(error)
      else resolve(chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, bytes))
    }

    payload.on('data', onData).on('end', finish).on('error', finish)
  })
}
