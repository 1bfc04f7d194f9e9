import { addMember, type Members, timeOfEpoch } from '@sluice/records'
import type { LinesOrigin } from '@sluice/row-scanner'
import type { Answer } from '../answer.ts'
import { checkBody, checkNotEmpty, toSentence } from '../intake/intake.ts'
import { Problem, type ProblemCode } from '../problems.ts'
import type { Outcome, Protocol, ProtocolRequest } from './protocol.ts'
import { asBearer, describeError, jsonAnswer, rejectKeyInUrl, statusOf } from './shippers.ts'

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
  read(body) {
    checkBody(body)
    return {
      read: (scanner, prefix) => scanner.scanRecords('HecEvents', body, prefix),
      rejections: {
        json: ({ records, message }) => [
          'invalid_json',
          `Event ${records} is not JSON. ${toSentence(message)}`,
        ],
      },
      answer: answerTo,
    }
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
    return {
      read: (scanner, prefix) => scanner.scanHecLines(body, prefix, origin),
      answer: answerTo,
    }
  },
}

export const splunkHec: readonly Protocol[] = [events, raw]

const originNames = ['host', 'source', 'sourcetype', 'index', 'time']
/** Of all parameters: each row has them. */
const VALUES_MAX = 16

/** Nothing is lost: a time that is not read is kept too. @throws Problem */
function originOfLines(query: ProtocolRequest['query']): LinesOrigin {
  const values = originNames.flatMap((name) =>
    [query[name]]
      .flat()
      .flatMap((value) => (typeof value === 'string' ? [[name, value.toWellFormed()] as const] : [])),
  )
  if (values.length > VALUES_MAX) {
    const detail = `The parameters ${originNames.join(', ')} may have at most ${VALUES_MAX} values together.`
    throw new Problem('bad_request', detail)
  }
  const metadata: Members = {}
  let timestamp: string | undefined
  for (const [name, value] of values) {
    const time = name === 'time' && timestamp === undefined ? timeOfEpoch(value.trim()) : undefined
    if (time === undefined) addMember(metadata, name, value)
    else timestamp = time
  }
  return timestamp === undefined ? { metadata } : { timestamp, metadata }
}

/**
 * Docker sends a batch once more after each response but 200, so the response is 200 as soon as an event is stored: the others are only counted.
 * A request without a valid event is rejected.
 */
function answerTo({ records, rejected }: Outcome): Answer {
  if (records === 0) return hecAnswer(400, 'noData')
  const [first] = rejected
  if (first === undefined) return hecAnswer(200, 'success')
  const [index, error] = first
  const more = {
    'invalid-event-number': index,
    rejected: rejected.size,
    detail: describeError(error, 'The event'),
  }
  if (rejected.size < records) return hecAnswer(200, 'success', more)
  return hecAnswer(400, eventCodes[error.message] ?? 'invalid', more)
}

/** The scanner's messages that have a code of their own. */
const eventCodes: Partial<Readonly<Record<string, Code>>> = {
  'has no event': 'eventRequired',
  'has a blank event': 'eventBlank',
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
