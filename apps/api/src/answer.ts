import type { FastifyReply } from 'fastify'
import { Readable } from 'node:stream'

/** The operating system takes a smaller response at once. A stream would cost more. */
export const STREAMED_BYTES_MIN = 64 * 1024

/** A response in the form that the clients of a protocol expect. */
export interface Answer {
  readonly status: number
  readonly type: string
  /** A long one may have parts, which are passed to the operating system one by one. */
  readonly body: string | Buffer | readonly Buffer[]
  /** The length of a body in parts. */
  readonly bytes?: number
  readonly headers?: Readonly<Record<string, string>>
}

export function sendAnswer(
  reply: FastifyReply,
  { status, type, body, bytes = 0, headers = {} }: Answer,
): FastifyReply {
  void reply.code(status).headers(headers).type(type)
  if (typeof body === 'string' || Buffer.isBuffer(body)) return reply.send(body)
  if (bytes < STREAMED_BYTES_MIN) return reply.send(Buffer.concat(body))
  return reply.header('content-length', bytes).send(Readable.from(body))
}
