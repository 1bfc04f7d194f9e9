import { addMember, isPlainObject, type Members, timeOfEpoch } from '@sluice/records'
import { parseJsonExactly } from '@sluice/rows'
import { limits } from '@sluice/schema'
import { createHash } from 'node:crypto'
import type { Answer } from '../answer.ts'
import { checkBody, checkNotEmpty } from '../intake/body.ts'
import { type Outcome, type SourceRecord, tooManyRecords } from '../intake/records.ts'
import { search, type Shape, STEP_BYTES } from '../intake/value-finder.ts'
import { Problem, type ProblemCode } from '../problems.ts'
import type { Protocol, ProtocolRequest, Reading } from './protocol.ts'
import {
  asBearer,
  describeError,
  hasTooManyNames,
  jsonAnswer,
  linesOf,
  recordOf,
  rejection,
  rejectKeyInUrl,
  statusOf,
  toEntry,
  tooManyNames,
  withMetadata,
} from './shippers.ts'

/** The codes of HEC that this service has, with their messages. */
const codes = {
  success: [0, 'Success'],
  disabled: [1, 'Token disabled'],
  unauthorized: [3, 'Invalid authorization'],
  noData: [5, 'No data'],
  invalid: [6, 'Invalid data format'],
  failed: [8, 'Internal server error'],
  busy: [9, 'Server is busy'],
  eventRequired: [12, 'Event field is required'],
  eventBlank: [13, 'Event field cannot be blank'],
  healthy: [17, 'HEC is healthy'],
  tooLarge: [27, 'Request entity too large'],
} as const
type Code = keyof typeof codes

function hecAnswer(status: number, code: Code, more: object = {}): Answer {
  const [number, text] = codes[code]
  return jsonAnswer(status, { text, code: number, ...more })
}

const common = {
  methods: ['POST'],
  authorization: ({ authorization }) => asBearer(authorization, ['splunk'], ['basic']),
  check: rejectKeyInUrl('token', 'Authorization header'),
  reject: rejectHec,
} as const satisfies Partial<Protocol>

/** The HTTP Event Collector of Splunk: events in JSON, from Docker, Fluent Bit, Vector, the Collector and Splunk's libraries. */
const events: Protocol = {
  ...common,
  paths: ['/services/collector', '/services/collector/event', '/services/collector/event/1.0'],
  read(body, request) {
    checkBody(body)
    return { records: () => jsonEvents(body), answer: answerTo(request) }
  },
  // Docker's logging driver asks so before a container starts.
  optionsAnswer: hecAnswer(200, 'success'),
  // Vector and Fluent Bit check the health.
  fixedAnswers: [
    {
      paths: ['/services/collector/health', '/services/collector/health/1.0'],
      needsKey: false,
      answer: hecAnswer(200, 'healthy'),
    },
  ],
}

/** Lines, as Splunk's libraries for Java send them. */
const raw: Protocol = {
  ...common,
  paths: ['/services/collector/raw', '/services/collector/raw/1.0'],
  read(body, request) {
    checkNotEmpty(body)
    const origin = originOfLines(request.query)
    return { records: () => rawEvents(body, origin), answer: answerTo(request) }
  },
}

/** Vector asks which of its requests are stored. All are, because a request gets its number after its events are stored. */
const acks: Protocol = {
  ...common,
  paths: ['/services/collector/ack', '/services/collector/ack/1.0'],
  read(body) {
    const ids = readAckIds(body)
    const answer = jsonAnswer(200, { acks: Object.fromEntries(ids.map((id) => [String(id), true])) })
    return { records: () => [], answer: () => answer }
  },
}

export const splunkHec: readonly Protocol[] = [events, raw, acks]

/** Most clients write one object after another. Some send an array. */
const shape: Shape = { take: 'event', elements: { take: 'event' } }

/**
 * The events of `/services/collector/event`.
 *
 * @throws Problem for a body that is not a sequence of JSON values, or has more values than a request may have records
 */
export function* jsonEvents(body: Buffer): Generator<SourceRecord | undefined> {
  let count = 0
  let values = 0
  for (let at = yield* skipBlanks(body, 0); at < body.length; at = yield* skipBlanks(body, at)) {
    values += 1
    // A body may have millions of arrays without an event.
    if (values > limits.recordsPerRequestMax) throw tooManyRecords()
    yield undefined
    const finder = yield* search(body, shape, at)
    if (finder.rootEnd < 0) throw new Problem('invalid_json', `Event ${count} is not JSON. ${finder.fault}`)
    count += finder.found.length
    for (const found of finder.found) yield recordOf(body, found, recordOfEvent)
    at = finder.rootEnd
  }
}

/** JSON's whitespace. */
const blanks: ReadonlySet<number> = new Set(Buffer.from(' \t\r\n'))

function* skipBlanks(body: Buffer, from: number): Generator<undefined, number> {
  let stepEnd = from + STEP_BYTES
  let at = from
  while (at < body.length && blanks.has(body[at] ?? 0)) {
    at += 1
    if (at === stepEnd) {
      stepEnd += STEP_BYTES
      yield undefined
    }
  }
  return at
}

const missingEvent = rejection('missing', 'has no event')
const blankEvent = rejection('missing', 'has a blank event')

/** An event, and what its envelope says about it. */
function recordOfEvent(envelope: Members): SourceRecord {
  const { event, fields, time, ...origin } = envelope
  if ([event, fields, ...partsOf(event)].some((part) => isPlainObject(part) && hasTooManyNames(part)))
    return tooManyNames
  if (event === undefined) return missingEvent
  if (event === null || event === '') return blankEvent
  const timestamp = timeOf(time)
  const record = together(
    timestamp === undefined ? {} : { timestamp },
    membersOf(event),
    isPlainObject(fields) ? fields : {},
  )
  const kept = isPlainObject(fields) ? {} : { fields }
  const unread = timestamp === undefined ? { time } : {}
  return { entry: withMetadata(toEntry(record), { ...origin, ...kept, ...unread }) }
}

/** What `membersOf` takes the members of. */
const partsOf = (event: unknown): unknown[] =>
  isPlainObject(event) ? [event['message'], event['line'], event['attrs']] : []

function membersOf(event: unknown): Members {
  if (!isPlainObject(event)) return { message: typeof event === 'string' ? event : JSON.stringify(event) }
  const { line, message, ...rest } = event
  // Splunk's library for JavaScript has the fields of a message there.
  if (isPlainObject(message)) return together(message, rest, 'line' in event ? { line } : {})
  if (message === undefined && Object.hasOwn(event, 'source')) {
    // Docker's logging driver has the message there, or its fields if it is JSON.
    const { attrs, ...origin } = rest
    const labels = isPlainObject(attrs) ? attrs : {}
    if (typeof line === 'string') return together({ message: line }, labels, origin)
    if (isPlainObject(line)) return together(line, labels, origin)
  }
  return event
}

function together(...parts: readonly Members[]): Members {
  const all: Members = {}
  for (const part of parts) for (const name of Object.keys(part)) addMember(all, name, part[name])
  return all
}

/** Seconds since 1970 with a fraction, as a number or as a string. */
function timeOf(time: unknown): string | undefined {
  if (typeof time === 'string') return timeOfEpoch(time.trim())
  // A number that was parsed exactly has all its digits as JSON.
  return time === undefined ? undefined : timeOfEpoch(JSON.stringify(time))
}

/** What the parameters of `/services/collector/raw` say about all lines. */
interface LinesOrigin {
  readonly timestamp?: string
  readonly metadata: Readonly<Members>
}

const originNames = ['host', 'source', 'sourcetype', 'index', 'time']
/** Of all parameters: each row has them. */
const VALUES_MAX = 16

/** Nothing is lost: a time that is not read is kept too. @throws Problem */
function originOfLines(query: ProtocolRequest['query']): LinesOrigin {
  const values = originNames.flatMap((name) =>
    [query[name]].flat().flatMap((value) => (typeof value === 'string' ? [[name, value] as const] : [])),
  )
  if (values.length > VALUES_MAX) {
    const detail = `The parameters ${originNames.join(', ')} may have at most ${VALUES_MAX} values together.`
    throw new Problem('bad_request', detail)
  }
  const metadata: Members = {}
  let timestamp: string | undefined
  for (const [name, value] of values) {
    const time = name === 'time' && timestamp === undefined ? timeOf(value) : undefined
    if (time === undefined) addMember(metadata, name, value)
    else timestamp = time
  }
  return timestamp === undefined ? { metadata } : { timestamp, metadata }
}

/** A line that is valid has far fewer bytes. */
const LINE_BYTES_MAX = 512 * 1024
const tooLong = rejection('too_long', 'has more characters than a message can have', '/message')

/** The lines of `/services/collector/raw`. Bytes that are not UTF-8 become U+FFFD. */
function* rawEvents(
  body: Buffer,
  { metadata, ...timestamp }: LinesOrigin,
): Generator<SourceRecord | undefined> {
  for (const line of linesOf(body)) {
    if (line === undefined) yield undefined
    else if (line.end - line.start > LINE_BYTES_MAX) yield tooLong
    else {
      const message = body.toString('utf8', line.start, line.end)
      yield { entry: withMetadata(toEntry({ message, ...timestamp }), metadata) }
    }
  }
}

/** Clients ask for some hundred acknowledgements at once. A question is read in one step. */
const ACKS_BYTES_MAX = 16 * 1024
/** A number that all clients read exactly. */
const ACK_ID_BYTES = 6

/** @throws Problem `invalid_json`, `body_too_large` */
function readAckIds(body: Buffer): readonly number[] {
  if (body.length > ACKS_BYTES_MAX) {
    const detail = `A question about acknowledgements may have at most ${ACKS_BYTES_MAX} bytes.`
    throw new Problem('body_too_large', detail)
  }
  try {
    const value = parseJsonExactly(body.toString())
    const ids = isPlainObject(value) ? value['acks'] : undefined
    if (Array.isArray(ids) && ids.every((id) => Number.isSafeInteger(id))) return ids as number[]
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  throw new Problem('invalid_json', 'Send {"acks": [numbers]}.')
}

/** A request with a channel gets a number, which a client may ask for later. A replay has the number of the first response. */
function ackOf({ headers, query }: ProtocolRequest, identity: string): object {
  if (headers['x-splunk-request-channel'] === undefined && query['channel'] === undefined) return {}
  return { ackId: createHash('sha256').update(identity).digest().readUIntBE(0, ACK_ID_BYTES) }
}

/**
 * Docker sends a batch once more after each response but 200, so the response is 200 as soon as an event is stored: the others are only counted.
 * A request without a valid event is rejected.
 */
function answerTo(request: ProtocolRequest): Reading['answer'] {
  return ({ records, rejected }: Outcome, { identity }) => {
    if (records === 0) return hecAnswer(400, 'noData')
    const [first] = rejected
    if (first === undefined) return hecAnswer(200, 'success', ackOf(request, identity))
    const [index, error] = first
    const more = {
      'invalid-event-number': index,
      rejected: rejected.size,
      detail: describeError(error, 'The event'),
    }
    if (rejected.size < records) return hecAnswer(200, 'success', { ...ackOf(request, identity), ...more })
    const code =
      error === missingEvent.error ? 'eventRequired' : error === blankEvent.error ? 'eventBlank' : 'invalid'
    return hecAnswer(400, code, more)
  }
}

const rejections: Partial<Readonly<Record<ProblemCode, Code>>> = {
  unauthorized: 'unauthorized',
  forbidden: 'disabled',
  project_not_found: 'disabled',
  empty_body: 'noData',
  body_too_large: 'tooLarge',
  too_many_entries: 'tooLarge',
  internal_error: 'failed',
}

function rejectHec({ code, message }: Problem): Answer {
  const status = statusOf(code)
  // All clients retry after 503, and older versions of Fluent Bit not after 429, which HEC does not have.
  if (status === 429 || status === 503) return hecAnswer(503, 'busy', { detail: message })
  // HEC does not have 404 for a token.
  const answered = code === 'project_not_found' ? 403 : status
  return hecAnswer(answered, rejections[code] ?? 'invalid', { detail: message })
}
