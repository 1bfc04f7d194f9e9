import { levelOf, type Members, setMember } from '@sluice/records'
import { checkBody } from '../intake/body.ts'
import type { SourceRecord } from '../intake/records.ts'
import { findValues, type Shape } from '../intake/value-finder.ts'
import { problems } from '../problems.ts'
import type { Protocol } from './protocol.ts'
import { describeError, jsonAnswer, recordOf, rejectKeyInUrl, statusOf, toEntry } from './shippers.ts'

/** The logs API v2 of Datadog, for its Agent, Vector and Fluent Bit. */
export const datadogLogs: Protocol = {
  paths: ['/api/v2/logs'],
  methods: ['POST'],
  authorization: ({ 'dd-api-key': key }) => (typeof key === 'string' ? `Bearer ${key}` : undefined),
  check: rejectKeyInUrl('dd-api-key', 'header DD-API-KEY'),
  read(body) {
    checkBody(body)
    return {
      records: () => logsOf(body),
      // The Agent does not retry after 400. As soon as a log is stored the response is 202, because Fluent Bit retries after any other.
      answer({ records, rejected }) {
        const [first] = rejected
        if (first === undefined) return jsonAnswer(202, {})
        const [index, error] = first
        const detail = `${rejected.size} of ${records} logs are rejected. Log ${index}: ${describeError(error, '')}.`
        return jsonAnswer(rejected.size < records ? 202 : 400, errorsOf(400, 'Invalid logs', detail))
      },
    }
  },
  reject({ code, message }) {
    const status = statusOf(code)
    const isWithoutKey = code === 'unauthorized' && message === problems.unauthorized.detail
    const detail = isWithoutKey ? 'Send the header DD-API-KEY with a valid key.' : message
    return jsonAnswer(status, errorsOf(status, problems[code].title, detail))
  },
  // The Agent and Vector validate their key so.
  fixedAnswers: [{ paths: ['/api/v1/validate'], needsKey: true, answer: jsonAnswer(200, { valid: true }) }],
}

function errorsOf(status: number, title: string, detail: string): object {
  return { errors: [{ status: String(status), title, detail }] }
}

const shape: Shape = { take: 'log', elements: { take: 'log' } }

function* logsOf(body: Buffer): Generator<SourceRecord | undefined> {
  for (const found of yield* findValues(body, shape)) yield recordOf(body, found, recordOfLog)
}

/** The status of a log is its level, and its tags may have the environment and the service. */
function recordOfLog(log: Members): SourceRecord | undefined {
  // The Agent sends an empty object to test the connection.
  if (Object.keys(log).length === 0) return undefined
  const { status, ddtags } = log
  const level = typeof status === 'string' && !Object.hasOwn(log, 'level') ? levelOfStatus(status) : undefined
  const record: Members = {}
  for (const name of Object.keys(log)) {
    if (name !== 'status' || level === undefined) setMember(record, name, log[name])
  }
  if (level !== undefined) record['level'] = level
  const { env, service } = readTags(ddtags)
  if (env && !Object.hasOwn(log, 'environment') && !Object.hasOwn(log, 'env')) record['env'] = env
  if (service && !Object.hasOwn(log, 'service')) record['service'] = service
  return { entry: toEntry(record) }
}

/** The name of a level, as Datadog writes it. */
function levelOfStatus(status: string): string | undefined {
  if (status.toLowerCase() === 'ok') return 'success'
  return levelOf(status) === undefined ? undefined : status
}

/** Longer lists are not searched. */
const TAGS_CHARACTERS_MAX = 8_192

/** `env:prod,version:1.2`. The tags stay in the metadata as well. */
function readTags(ddtags: unknown): { readonly env?: string; readonly service?: string } {
  if (typeof ddtags !== 'string' || ddtags.length > TAGS_CHARACTERS_MAX) return {}
  const tags = ddtags.split(',').map((tag) => /^\s*(env|service)\s*:(.*)$/s.exec(tag))
  return Object.fromEntries(tags.flatMap((match) => (match === null ? [] : [[match[1], match[2]?.trim()]])))
}
