import type { IncomingHttpHeaders } from 'node:http'
import type { Answer } from '../../answer.ts'
import { checkBody } from '../../intake/intake.ts'
import { Problem, problems } from '../../problems.ts'
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
    const hasRecords = areLinesJson(headers)
    if (isInJson) checkBody(body)
    return {
      read: (scanner, prefix) =>
        scanner.scanRecords(isInJson ? 'LokiJson' : 'Loki', body, prefix, hasRecords),
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

/** Whether lines are records of loggers. @throws Problem */
function areLinesJson({ 'sluice-loki-lines': lines }: IncomingHttpHeaders): boolean {
  if (lines !== undefined && lines !== 'json')
    throw new Problem('bad_request', 'Sluice-Loki-Lines has one value, "json". Send it once.')
  return lines !== undefined
}

/**
 * Clients for loggers send the whole batch once more after each response but 204, so the response is 204 as soon as a line is stored: the
 * others are only counted.
 */
function answerTo({ records, rejected }: Outcome): Answer {
  const [first] = rejected
  if (first === undefined || rejected.size < records) return textAnswer(204, '')
  const [index, error] = first
  return textAnswer(400, `All lines are rejected. Line ${index}: ${describeError(error, '')}.\n`)
}

function textAnswer(status: number, body: string): Answer {
  return { status, type: 'text/plain; charset=utf-8', body }
}
