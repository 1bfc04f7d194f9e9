import { isPlainObject, type Members } from '@sluice/records'
import type { IncomingHttpHeaders } from 'node:http'
import type { Answer } from '../../answer.ts'
import { checkBody } from '../../intake/body.ts'
import type { SourceRecord } from '../../intake/records.ts'
import { findValues, type FoundValue, parseFound, type Shape } from '../../intake/value-finder.ts'
import { Problem, problems } from '../../problems.ts'
import type { Protocol } from '../protocol.ts'
import { asBearer, describeError, hasTooManyNames, rejection, tooManyNames } from '../shippers.ts'
import { pushedProtobuf } from './push-protobuf.ts'
import { decodeSnappy, snappyBytes } from './snappy.ts'
import { LABELS_CHARACTERS_MAX, type LineReader, linesOfStream } from './stream.ts'

/**
 * Loki's push API: lines become entries, their labels and structured metadata become metadata. Promtail, Alloy and Vector send Protocol
 * Buffers; Fluent Bit and clients for loggers send JSON.
 */
export const lokiPush: Protocol = {
  paths: ['/loki/api/v1/push'],
  methods: ['POST'],
  authorization: ({ authorization }) => asBearer(authorization, [], ['basic']),
  encoding: {
    name: 'snappy',
    isUsed: (headers) => !isJson(headers),
    decodedBytes: snappyBytes,
    decode: decodeSnappy,
  },
  read(body, { headers }) {
    if (isJson(headers)) checkBody(body)
    return {
      records: () => (isJson(headers) ? pushedJson(body) : pushedProtobuf(body)),
      // No client retries after 400, so the valid lines are stored, and the response says what is wrong with the others. Loki does the same.
      answer({ records, rejected }) {
        const [first] = rejected
        if (first === undefined) return textAnswer(204, '')
        const [index, error] = first
        const stored = `${records - rejected.size} lines are stored, ${rejected.size} are rejected.`
        return textAnswer(400, `${stored} Line ${index}: ${describeError(error, '')}.\n`)
      },
    }
  },
  reject: (problem) => textAnswer(problems[problem.code].status, `${problem.message}\n`),
}

/** Everything else is Protocol Buffers with snappy, as for Loki. */
function isJson({ 'content-type': contentType = '' }: IncomingHttpHeaders): boolean {
  return /^application\/json\s*(;|$)/i.test(contentType)
}

function textAnswer(status: number, body: string): Answer {
  return { status, type: 'text/plain; charset=utf-8', body }
}

/** `{"streams": [{"stream": {"app": "x"}, "values": [["<nanoseconds>", "<line>", {"<name>": "<value>"}]]}]}` */
const shape: Shape = {
  other: 'other',
  group: 'request',
  members: {
    streams: {
      other: 'other',
      group: 'streams',
      elements: {
        other: 'other',
        group: 'stream',
        members: {
          stream: { take: 'labels' },
          values: { other: 'other', group: 'values', elements: { take: 'value' } },
        },
      },
    },
  },
}

/** The lines of a push request in JSON. @throws Problem */
export function* pushedJson(body: Buffer): Generator<SourceRecord | undefined> {
  const found = yield* findValues(body, shape)
  checkShape(found)
  let read: LineReader | undefined
  for (const [at, value] of found.entries()) {
    if (value.tag === 'stream') {
      const labels = labelsOf(body, found, at)
      read = labels === undefined ? undefined : linesOfStream(labels)
      yield undefined
    } else if (value.tag === 'value') yield read === undefined ? wrongLabels : lineOf(body, value, read)
  }
}

const wrongLabels = rejection('wrong_type', 'has a stream without valid labels')

/** Lines that are not found must not be acknowledged: clients drop what has a 204. @throws Problem */
function checkShape(found: readonly FoundValue[]): void {
  const tags = new Set<string>()
  let isComplete = true
  for (const { tag } of found) {
    // Each stream must have values. Null stands for none.
    if (tag === 'stream' && !isComplete) throw wrongShape()
    if (tag === 'stream' || tag === 'values') isComplete = tag === 'values'
    tags.add(tag)
  }
  if (tags.has('other') || !tags.has('streams') || !isComplete) throw wrongShape()
}

function wrongShape(): Problem {
  return new Problem(
    'invalid_body',
    'The body has no lines in the expected place. Send {"streams": [{"stream": {labels}, "values": [["<nanoseconds>", "<line>"]]}]}.',
  )
}

/** An escape in JSON. */
const BYTES_PER_CHARACTER_MAX = 6

/**
 * The labels of a stream. They may follow its lines, and the last ones count.
 *
 * @param at the place of the stream in what was found
 * @returns undefined if they are malformed or too large
 */
function labelsOf(body: Buffer, found: readonly FoundValue[], at: number): Members | undefined {
  let last: FoundValue | undefined
  for (let next = at + 1; next < found.length && found[next]?.tag !== 'stream'; next += 1) {
    if (found[next]?.tag === 'labels') last = found[next]
  }
  if (last === undefined) return {}
  if (last.end - last.start > BYTES_PER_CHARACTER_MAX * LABELS_CHARACTERS_MAX) return undefined
  const parsed = parseFound(body, last)
  if (!('value' in parsed) || !isPlainObject(parsed.value) || hasTooManyNames(parsed.value)) return undefined
  return JSON.stringify(parsed.value).length > LABELS_CHARACTERS_MAX ? undefined : parsed.value
}

const wrongLine = rejection('wrong_type', 'must be an array of a time, a line and structured metadata')

function lineOf(body: Buffer, found: FoundValue, read: LineReader): SourceRecord {
  const parsed = parseFound(body, found)
  if ('error' in parsed) return parsed
  if (!Array.isArray(parsed.value)) return wrongLine
  const [time, line, metadata = {}, ...more] = parsed.value as readonly unknown[]
  if (more.length > 0 || typeof line !== 'string' || !isPlainObject(metadata)) return wrongLine
  if (hasTooManyNames(metadata)) return tooManyNames
  // Clients send a string, because the number has more digits than a double.
  const digits = typeof time === 'string' ? time : (JSON.stringify(time) ?? '')
  return read(/^\d{1,19}$/.test(digits) ? BigInt(digits) : undefined, line, metadata)
}
