import type { BulkItem } from '@sluice/row-scanner'
import type { Answer } from '../../answer.ts'
import { Problem, type ProblemCode } from '../../problems.ts'
import type { FixedAnswer, Protocol } from '../protocol.ts'
import { asBearer, statusOf } from '../shippers.ts'
import { bulkAnswer, elasticAnswer, errorOf } from './bulk-answer.ts'

/**
 * Filebeat and Logstash reject versions that are older than their own. This one is newer than all of them, and has the major version
 * whose bulk requests are understood.
 */
const VERSION = '9.99.0'

/** Elastic's clients of the versions 7 and 8 check the tagline, the flavor and a header. Logstash reads the UUID. */
const banner = {
  name: 'sluice',
  cluster_name: 'sluice',
  cluster_uuid: 'sluiceAAAAAAAAAAAAAAAA',
  version: { number: VERSION, build_flavor: 'default', minimum_wire_compatibility_version: '8.0.0' },
  tagline: 'You Know, for Search',
}
const license = { status: 'active', uid: '00000000-0000-0000-0000-000000000000', type: 'basic' }
const health = { cluster_name: 'sluice', status: 'green', timed_out: false, number_of_nodes: 1 }

function json(paths: readonly string[], body: object): FixedAnswer {
  return { paths, needsKey: true, answer: elasticAnswer(200, JSON.stringify(body)) }
}

/**
 * Only winston-elasticsearch counts attempts in its actions. After `errors: true` it sends all documents again, 400 times: if one of them is
 * stored, its response does not have `errors`.
 */
const ATTEMPTS = '"attempts":'
const NEWLINE = 0x0a

/** The bulk API of Elasticsearch: documents become entries, and each gets an item of the response. */
export const elasticsearchBulk: Protocol = {
  // Fluent Bit writes the slash if it has a pipeline.
  paths: [
    '/elasticsearch/_bulk',
    '/elasticsearch/_bulk/',
    '/elasticsearch/:index/_bulk',
    '/elasticsearch/:index/_bulk/',
  ],
  // The Python client sends PUT.
  methods: ['POST', 'PUT'],
  authorization: ({ authorization }) => asBearer(authorization, ['apikey'], ['apikey', 'basic']),
  read(body, { params }) {
    if (body.length === 0) throw new Problem('empty_body', 'request body is required')
    let items: readonly BulkItem[] = []
    const isAttempt = body.subarray(0, body.indexOf(NEWLINE)).includes(ATTEMPTS)
    return {
      read(scanner, prefix) {
        const scanned = scanner.scanBulk(body, prefix, params['index'] ?? null)
        items = scanned.items
        if (items.length === 0) throw new Problem('empty_body', 'no requests added')
        return scanned
      },
      answer(outcome, answering) {
        const hasErrors = !isAttempt || outcome.rejected.size === outcome.records
        return bulkAnswer(items, outcome, hasErrors, answering)
      },
    }
  },
  reject: rejectBulk,
  fixedAnswers: [
    // Filebeat, Logstash and Elastic's clients.
    json(['/elasticsearch', '/elasticsearch/'], banner),
    // Filebeat and Logstash.
    json(['/elasticsearch/_license'], { license }),
    // Vector.
    json(['/elasticsearch/_cluster/health'], health),
    // Scripts that wait for a cluster.
    {
      paths: ['/elasticsearch/_cat/health'],
      needsKey: true,
      answer: { ...elasticAnswer(200, 'green\n'), type: 'text/plain; charset=UTF-8' },
    },
  ],
}

/** The types of errors that clients know. */
const types: Partial<Readonly<Record<ProblemCode, string>>> = {
  unauthorized: 'security_exception',
  forbidden: 'security_exception',
  project_not_found: 'security_exception',
  body_too_large: 'content_too_long_exception',
  too_many_entries: 'content_too_long_exception',
  internal_error: 'internal_server_error',
}

function rejectBulk({ code, message }: Problem): Answer {
  const known = statusOf(code)
  // All shippers retry after 429. Elastic's client for JavaScript repeats a request after 503 at once.
  const status = known === 503 ? 429 : known
  const type =
    types[code] ?? (status === 429 ? 'es_rejected_execution_exception' : 'illegal_argument_exception')
  const error = errorOf(type, message)
  return elasticAnswer(status, JSON.stringify({ error: { root_cause: [error], ...error }, status }))
}
