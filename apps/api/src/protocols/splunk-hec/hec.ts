import { checkBody } from '../../intake/body.ts'
import { Problem, problems } from '../../problems.ts'
import { asBearer } from '../authorization.ts'
import { queryText } from '../entries.ts'
import type { Protocol, ProtocolRequest } from '../protocol.ts'
import { ackIdOf, readAcks } from './acks.ts'
import { eventsAnswer, hecAnswer, jsonAnswer, rejectHec } from './answers.ts'
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
  read(body, { id, headers, query }) {
    checkBody(body)
    const ackId = ackIdOf(id, headers, query)
    return { records: () => jsonEvents(body), answer: (outcome) => eventsAnswer(outcome, ackId) }
  },
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
  read(body, { id, headers, query }) {
    if (body.length === 0) throw new Problem('empty_body', problems.empty_body.detail)
    const ackId = ackIdOf(id, headers, query)
    const origin = Object.fromEntries(originNames.map((name) => [name, queryText(query, name)]))
    return {
      records: () => rawEvents(body, queryText(query, 'time'), origin),
      answer: (outcome) => eventsAnswer(outcome, ackId),
    }
  },
}
const originNames = ['host', 'source', 'sourcetype', 'index']

const acks: Protocol = {
  ...common,
  paths: ['/services/collector/ack', '/services/collector/ack/1.0'],
  read(body) {
    const answer = jsonAnswer(200, readAcks(body))
    return { records: () => [], answer: () => answer }
  },
}

export const splunkHec: readonly Protocol[] = [events, raw, acks]

/** @throws Problem */
function rejectToken({ query }: Pick<ProtocolRequest, 'query'>): void {
  if (query['token'] === undefined) return
  throw new Problem(
    'unauthorized',
    'Send the key in the Authorization header. A key in a URL ends up in logs.',
  )
}
