import type { IncomingHttpHeaders } from 'node:http'
import type { Answer } from '../../answer.ts'
import { checkBody } from '../../intake/intake.ts'
import { problems } from '../../problems.ts'
import type { Outcome, Protocol } from '../protocol.ts'
import { asBearer, describeError } from '../shippers.ts'
import { decodeSnappy } from './snappy.ts'

/**
 * Loki's push API: lines become entries, their labels and structured metadata become metadata. Promtail, Alloy and Vector send Protocol
 * Buffers; Fluent Bit and clients for loggers send JSON.
 */
export const lokiPush: Protocol = {
  paths: ['/loki/api/v1/push'],
  methods: ['POST'],
  authorization: ({ authorization }) => asBearer(authorization, [], ['basic']),
  encoding: { name: 'snappy', isUsed: (headers) => !isJson(headers), decode: decodeSnappy },
  read(body, { headers }) {
    const isInJson = isJson(headers)
    if (isInJson) checkBody(body)
    return {
      read: (scanner, prefix) =>
        isInJson ? scanner.scanRecords('LokiJson', body, prefix) : scanner.scanRecords('Loki', body, prefix),
      rejections: {
        message: ({ message }) => ['invalid_protobuf', `The body is not a PushRequest: ${message}.`],
        shape: () => [
          'invalid_body',
          'The body has no lines in the expected place. Send {"streams": [{"stream": {labels}, "values": [["<nanoseconds>", "<line>"]]}]}.',
        ],
      },
      answer: answerTo,
    }
  },
  reject: (problem) => textAnswer(problems[problem.code].status, `${problem.message}\n`),
}

/** Everything else is Protocol Buffers with snappy, as for Loki. */
function isJson({ 'content-type': contentType = '' }: IncomingHttpHeaders): boolean {
  return /^application\/json\s*(;|$)/i.test(contentType)
}

/** No client retries after 400, so the valid lines are stored, and the response says what is wrong with the others. Loki does the same. */
function answerTo({ records, rejected }: Outcome): Answer {
  const [first] = rejected
  if (first === undefined) return textAnswer(204, '')
  const [index, error] = first
  const stored = `${records - rejected.size} lines are stored, ${rejected.size} are rejected.`
  return textAnswer(400, `${stored} Line ${index}: ${describeError(error, '')}.\n`)
}

function textAnswer(status: number, body: string): Answer {
  return { status, type: 'text/plain; charset=utf-8', body }
}
