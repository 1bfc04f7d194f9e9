import type { FastifyReply } from 'fastify'
import { Readable } from 'node:stream'

/** An answer in the form that the clients of a protocol expect. */
export interface Answer {
  readonly status: number
  /** The media type. */
  readonly type: string
  /** The parts of a long one are passed to the operating system one by one. */
  readonly body: string | Buffer | readonly Buffer[]
  readonly headers?: Readonly<Record<string, string>>
}

export function sendAnswer(reply: FastifyReply, { status, type, body, headers = {} }: Answer): FastifyReply {
  void reply.code(status).headers(headers).type(type)
  if (typeof body === 'string' || Buffer.isBuffer(body)) return reply.send(body)
  const bytes = body.reduce((sum, part) => sum + part.length, 0)
  return reply.header('content-length', bytes).send(Readable.from(body))
}
