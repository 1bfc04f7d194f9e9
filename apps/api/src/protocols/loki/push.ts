import type { IncomingHttpHeaders } from 'node:http'
import { limits } from '@sluice/schema'
import type { Answer } from '../../answer.ts'
import { checkBody } from '../../intake/body.ts'
import type { Outcome } from '../../intake/records.ts'
import { Problem, problems } from '../../problems.ts'
import { asBearer } from '../authorization.ts'
import type { Protocol } from '../protocol.ts'
import { pushedJson } from './push-json.ts'
import { pushedProtobuf } from './push-protobuf.ts'
import { decodeSnappy, snappyBytes, SnappyError } from './snappy.ts'

/** Loki's push API: lines become entries, their labels and structured metadata become metadata. */
export const lokiPush: Protocol = {
  paths: ['/loki/api/v1/push'],
  methods: ['POST'],
  authorization: ({ authorization }) => asBearer(authorization, [], ['basic']),
  encoding: { name: 'snappy', isUsed: (headers) => !isJson(headers), decodedBytes, decode },
  read(body, { headers }) {
    if (isJson(headers)) checkBody(body)
    return { records: () => (isJson(headers) ? pushedJson(body) : pushedProtobuf(body)), answer }
  },
  reject: (problem) => textAnswer(problems[problem.code].status, `${problem.message}\n`),
}

/** Everything else is Protocol Buffers with snappy, as for Loki. */
function isJson({ 'content-type': contentType = '' }: IncomingHttpHeaders): boolean {
  return /^application\/json\s*(;|$)/i.test(contentType)
}

function decodedBytes(body: Buffer): number {
  if (body.length === 0) throw new Problem('empty_body', problems.empty_body.detail)
  try {
    return snappyBytes(body, limits.bodyBytesMax)
  } catch (error) {
    throw toProblem(error)
  }
}

function* decode(body: Buffer): Generator<undefined, Buffer> {
  try {
    return yield* decodeSnappy(body, limits.bodyBytesMax)
  } catch (error) {
    throw toProblem(error)
  }
}

function toProblem(error: unknown): unknown {
  if (!(error instanceof SnappyError)) return error
  if (error.isTooLarge) return new Problem('body_too_large', problems.body_too_large.detail)
  return new Problem('invalid_encoding', `The body is not snappy: ${error.message}.`)
}

/** No client retries after 400, so the valid lines are stored, and the answer tells of the others. Loki does the same. */
function answer({ records, rejected }: Outcome): Answer {
  const [first] = rejected
  if (first === undefined) return textAnswer(204, '')
  const [index, { path, message }] = first
  const where = path === '' ? '' : `${path} `
  const stored = `${records - rejected.size} lines are stored, ${rejected.size} are rejected.`
  return textAnswer(400, `${stored} Line ${index}: ${where}${message}.\n`)
}

const textAnswer = (status: number, body: string): Answer => ({
  status,
  type: 'text/plain; charset=utf-8',
  body,
})
