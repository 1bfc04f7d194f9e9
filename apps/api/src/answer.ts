import type { FastifyReply } from 'fastify'

/** An answer in the form that the clients of a protocol expect. */
export interface Answer {
  readonly status: number
  /** The media type. */
  readonly type: string
  readonly body: string | Buffer
  readonly headers?: Readonly<Record<string, string>>
}

export function sendAnswer(reply: FastifyReply, { status, type, body, headers = {} }: Answer): FastifyReply {
  return reply.code(status).headers(headers).type(type).send(body)
}
