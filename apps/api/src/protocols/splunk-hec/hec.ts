import { checkBody } from '../../intake/body.ts'
import { Problem, problems } from '../../problems.ts'
import { asBearer } from '../authorization.ts'
import { addMember, type Members, queryTexts } from '../entries.ts'
import type { Protocol, ProtocolRequest, Reading } from '../protocol.ts'
import { ackIdOf, hasChannel, readAcks } from './acks.ts'
import { eventsAnswer, hecAnswer, jsonAnswer, rejectHec } from './answers.ts'
import { type LinesOrigin, timeOf } from './event.ts'
import { jsonEvents, rawEvents } from './events.ts'

const common = {
  methods: ['POST'],
  authorization: ({ authorization }) => asBearer(authorization, ['splunk'], ['basic']),
  check: rejectToken,
  reject: rejectHec,
} as const satisfies Partial<Protocol>

/** The HTTP Event Collector of Splunk: events in JSON. */
const events: Protocol = {
  ...common,
  paths: ['/services/collector', '/services/collector/event', '/services/collector/event/1.0'],
  read(body, request) {
    checkBody(body)
    return { records: () => jsonEvents(body), answer: answerTo(request) }
  },
  // Docker's logging driver asks so before a container starts.
  optionsAnswer: hecAnswer(200, 'success'),
  fixedAnswers: [
    {
      paths: ['/services/collector/health', '/services/collector/health/1.0'],
      needsKey: false,
      answer: hecAnswer(200, 'healthy'),
    },
  ],
}

/** Events as lines of text. */
const raw: Protocol = {
  ...common,
  paths: ['/services/collector/raw', '/services/collector/raw/1.0'],
  read(body, request) {
    const { query } = request
    if (body.length === 0) throw new Problem('empty_body', problems.empty_body.detail)
    const origin = originOfLines(query)
    return { records: () => rawEvents(body, origin), answer: answerTo(request) }
  },
}

const originNames = ['host', 'source', 'sourcetype', 'index', 'time']
/** Of all parameters: each row has them. */
const VALUES_MAX = 16

/** Nothing is lost: a time that is not read is kept too. @throws Problem */
function originOfLines(query: ProtocolRequest['query']): LinesOrigin {
  const values = originNames.flatMap((name) => queryTexts(query, name).map((value) => [name, value] as const))
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

const acks: Protocol = {
  ...common,
  paths: ['/services/collector/ack', '/services/collector/ack/1.0'],
  read(body) {
    const answer = jsonAnswer(200, readAcks(body))
    return { records: () => [], answer: () => answer }
  },
}

export const splunkHec: readonly Protocol[] = [events, raw, acks]

function answerTo(request: ProtocolRequest): Reading['answer'] {
  return (outcome, { identity }) => eventsAnswer(outcome, hasChannel(request) ? ackIdOf(identity) : undefined)
}

/** @throws Problem */
function rejectToken({ query }: Pick<ProtocolRequest, 'query'>): void {
  if (query['token'] === undefined) return
  throw new Problem(
    'unauthorized',
    'Send the key in the Authorization header. A key in a URL ends up in logs.',
  )
}
