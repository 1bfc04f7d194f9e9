import type { Answer } from '../../answer.ts'
import type { Outcome } from '../../intake/records.ts'
import { type Problem, type ProblemCode, problems } from '../../problems.ts'
import { EVENT_BLANK, EVENT_REQUIRED } from './event.ts'

/** The codes of HEC that this service has, with their texts. */
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

export function hecAnswer(status: number, code: Code, more: object = {}): Answer {
  const [number, text] = codes[code]
  return jsonAnswer(status, { text, code: number, ...more })
}

export const jsonAnswer = (status: number, body: object): Answer => ({
  status,
  type: 'application/json',
  body: JSON.stringify(body),
})

/**
 * The answer to stored events. Some clients send a batch once more after each answer but 200, so that is the answer as soon as an event is
 * stored: the others are only counted. A request without a valid event is rejected.
 */
export function eventsAnswer({ records, rejected }: Outcome, ackId: number | undefined): Answer {
  if (records === 0) return hecAnswer(400, 'noData')
  const [first] = rejected
  const ack = ackId === undefined ? {} : { ackId }
  if (first === undefined) return hecAnswer(200, 'success', ack)
  const [index, { path, message }] = first
  const detail = `${path === '' ? 'The event' : path} ${message}`
  const more = { 'invalid-event-number': index, rejected: rejected.size, detail }
  if (rejected.size < records) return hecAnswer(200, 'success', { ...ack, ...more })
  return hecAnswer(400, invalidCodes[message] ?? 'invalid', more)
}

const invalidCodes: Readonly<Record<string, Code>> = {
  [EVENT_REQUIRED]: 'eventRequired',
  [EVENT_BLANK]: 'eventBlank',
}

const rejections: Partial<Readonly<Record<ProblemCode, readonly [status: number, code: Code]>>> = {
  unauthorized: [401, 'unauthorized'],
  forbidden: [403, 'disabled'],
  project_not_found: [403, 'disabled'],
  empty_body: [400, 'noData'],
  body_too_large: [413, 'tooLarge'],
  too_many_entries: [413, 'tooLarge'],
  internal_error: [500, 'failed'],
}

/** All clients retry after 503, and some of them after no status of the client. HEC has no 429. */
export function rejectHec({ code, message }: Problem): Answer {
  const { status } = problems[code]
  const [answered, hecCode] =
    rejections[code] ?? (status === 429 || status === 503 ? [503, 'busy'] : [status, 'invalid'])
  return hecAnswer(answered, hecCode, { detail: message })
}
