import type { BulkItem } from '@sluice/row-scanner'
import type { EntryError } from '@sluice/schema'
import type { Answer } from '../../answer.ts'
import { Problem, type ProblemCode } from '../../problems.ts'
import type { Answering, FixedAnswer, Outcome, Protocol } from '../protocol.ts'
import { asBearer, describeError, statusOf } from '../shippers.ts'

/** Elastic's clients reject responses without this header. */
const headers = { 'x-elastic-product': 'Elasticsearch' }

function elasticAnswer(status: number, body: Answer['body']): Answer {
  return { status, type: 'application/json; charset=utf-8', body, headers }
}

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
  const error = { type, reason: message }
  return elasticAnswer(status, JSON.stringify({ error: { root_cause: [error], ...error }, status }))
}

/** Items that are made in one step: about 2 ms. */
const ITEMS_PER_STEP = 1_024

/** The response to a bulk request: an item for each action. @param hasErrors whether it says that there are errors, if there are any */
export async function bulkAnswer(
  items: readonly BulkItem[],
  { rejected }: Outcome,
  hasErrors: boolean,
  { hold, nextTurn }: Pick<Answering, 'hold' | 'nextTurn'>,
): Promise<Answer> {
  const parts: Buffer[] = []
  let bytes = 0
  function add(text: string): void {
    const part = Buffer.from(text)
    hold(part.length)
    bytes += part.length
    parts.push(part)
  }

  // Many items are the same.
  let last: BulkItem | undefined
  let lastText = ''
  const textOf = (item: BulkItem, invalid: EntryError | undefined): string => {
    if (invalid !== undefined) return itemJson(item, invalid)
    if (item !== last) lastText = itemJson(item, undefined)
    last = item
    return lastText
  }
  const errors = hasErrors ? `"errors":${rejected.size > 0},` : ''
  let separator = `{"took":0,${errors}"items":[`
  for (let start = 0; start < items.length; start += ITEMS_PER_STEP) {
    if (items.length > ITEMS_PER_STEP) await nextTurn()
    const some = items.slice(start, start + ITEMS_PER_STEP)
    add(separator + some.map((item, at) => textOf(item, rejected.get(start + at))).join(','))
    separator = ','
  }
  add(']}')
  return { ...elasticAnswer(200, parts), bytes }
}

/** Stands for no index: Elastic's client for Java discards a response that has null. */
const NO_INDEX = 'sluice'
/** Enough to find the cause. A reason may have a name that the client chose, and a response has up to 16 Ki of them. */
const REASON_CHARACTERS_MAX = 160

function itemJson(item: BulkItem, invalid: EntryError | undefined): string {
  const { action, id } = item
  const place = `"_index":${JSON.stringify(shownIndex(item) ?? NO_INDEX)},"_id":${JSON.stringify(id)}`
  if (invalid === undefined) return `{"${action}":{${place},"status":201,"result":"created"}}`
  const [type, reason] = errorOf(item, invalid)
  const error = JSON.stringify({ type, reason: shorten(reason, REASON_CHARACTERS_MAX) })
  return `{"${action}":{${place},"status":400,"error":${error}}}`
}

/** Of an invalid name of an index in an item and in its reason, so that the fault is in the reason too. 16 Ki items may have it. */
const SHOWN_CHARACTERS_MAX = 41

function shownIndex({ index, indexFault }: BulkItem): string | null {
  return index === null || indexFault === undefined ? index : shorten(index, SHOWN_CHARACTERS_MAX)
}

/** What is wrong with the action, or else with its document. */
function errorOf(item: BulkItem, invalid: EntryError): readonly [type: string, reason: string] {
  const { action, indexFault } = item
  if (action === 'update' || action === 'delete')
    return ['action_request_validation_exception', 'The action must be index or create']
  if (indexFault === undefined) return ['document_parsing_exception', describeError(invalid, 'The document')]
  return ['invalid_index_name_exception', `Invalid index name [${shownIndex(item)}], ${indexFault}`]
}

/** The string itself, or its beginning and an ellipsis if it is longer. */
function shorten(string: string, charactersMax: number): string {
  return string.length <= charactersMax ? string : `${string.slice(0, charactersMax - 1).toWellFormed()}…`
}
