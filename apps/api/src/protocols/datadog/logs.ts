import type { Answer } from '../../answer.ts'
import { checkBody } from '../../intake/body.ts'
import type { Outcome, SourceRecord } from '../../intake/records.ts'
import { findValues, parseFound, type Shape } from '../../intake/value-finder.ts'
import { Problem, type ProblemCode, problems } from '../../problems.ts'
import { hasTooManyNames, isObject, notAnObject, tooManyNames } from '../entries.ts'
import type { Protocol } from '../protocol.ts'
import { entryOfLog } from './log.ts'

const shape: Shape = { take: 'log', elements: { take: 'log' } }

/** The logs API v2 of Datadog. */
export const datadogLogs: Protocol = {
  paths: ['/api/v2/logs'],
  methods: ['POST'],
  authorization: ({ 'dd-api-key': key }) => (typeof key === 'string' ? `Bearer ${key}` : undefined),
  check({ query }) {
    if (query['dd-api-key'] === undefined) return
    throw new Problem(
      'unauthorized',
      'Send the key in the header DD-API-KEY. A key in a URL ends up in logs.',
    )
  },
  read(body) {
    checkBody(body)
    return { records: () => logsOf(body), answer }
  },
  reject: ({ code, message }) => {
    const status = statuses[code] ?? problems[code].status
    const isWithoutKey = code === 'unauthorized' && message === problems.unauthorized.detail
    const detail = isWithoutKey ? KEY_EXPECTED : message
    return json(status, { errors: [errorOf(status, problems[code].title, detail)] })
  },
  fixedAnswers: [{ paths: ['/api/v1/validate'], needsKey: true, answer: json(200, { valid: true }) }],
}

/** Other protocols have another header. */
const KEY_EXPECTED = 'Send the header DD-API-KEY with a valid key.'

const statuses: Partial<Readonly<Record<ProblemCode, number>>> = { too_many_entries: 413 }

function* logsOf(body: Buffer): Generator<SourceRecord | undefined> {
  const found = yield* findValues(body, shape)
  for (const one of found) {
    const parsed = parseFound(body, one)
    if ('error' in parsed) yield parsed
    else if (!isObject(parsed.value)) yield notAnObject
    else if (hasTooManyNames(parsed.value)) yield tooManyNames
    // The agent sends an empty object to test the connection.
    else if (Object.keys(parsed.value).length > 0) yield { entry: entryOfLog(parsed.value) }
    else yield undefined
  }
}

/** The agent does not retry after 400. As soon as a log is stored the answer is 202, because other clients do. */
function answer({ records, rejected }: Outcome): Answer {
  const [first] = rejected
  if (first === undefined) return json(202, {})
  const [index, { path, message }] = first
  const status = rejected.size < records ? 202 : 400
  const detail = `${rejected.size} of ${records} logs are rejected. Log ${index}: ${path === '' ? '' : `${path} `}${message}.`
  return json(status, { errors: [errorOf(400, 'Invalid logs', detail)] })
}

const errorOf = (status: number, title: string, detail: string): object => ({
  status: String(status),
  title,
  detail,
})

function json(status: number, body: object): Answer {
  return { status, type: 'application/json', body: JSON.stringify(body) }
}
