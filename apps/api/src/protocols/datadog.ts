import { checkBody } from '../intake/intake.ts'
import { problems } from '../problems.ts'
import type { Protocol } from './protocol.ts'
import { describeError, jsonAnswer, rejectKeyInUrl, statusOf } from './shippers.ts'

/** The logs API v2 of Datadog, for its Agent, Vector and Fluent Bit. */
export const datadogLogs: Protocol = {
  paths: ['/api/v2/logs'],
  methods: ['POST'],
  authorization: ({ 'dd-api-key': key }) => (typeof key === 'string' ? `Bearer ${key}` : undefined),
  check: rejectKeyInUrl('dd-api-key', 'header DD-API-KEY'),
  read(body) {
    checkBody(body)
    return {
      read: (scanner, prefix) => scanner.scanRecords('Datadog', body, prefix),
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
