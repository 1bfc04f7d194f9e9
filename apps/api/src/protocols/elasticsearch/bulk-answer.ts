import type { BulkItem } from '@sluice/row-scanner'
import type { EntryError } from '@sluice/schema'
import type { Answer } from '../../answer.ts'
import type { Answering, Outcome } from '../protocol.ts'
import { describeError } from '../shippers.ts'

/** Elastic's clients reject responses without this header. */
const headers = { 'x-elastic-product': 'Elasticsearch' }

/** @param body JSON */
export function elasticAnswer(status: number, body: Answer['body']): Answer {
  return { status, type: 'application/json; charset=utf-8', body, headers }
}

interface ElasticError {
  readonly type: string
  readonly reason: string
}

export const errorOf = (type: string, reason: string): ElasticError => ({ type, reason })

type ItemField = '_index' | '_id' | 'status' | 'result' | 'error'

/** The parts of a response that a client asks for with the parameter `filter_path`. */
export interface Filter {
  readonly took: boolean
  readonly errors: boolean
  /** Whether the items have this field. */
  readonly field: (name: ItemField) => boolean
}

const everything: Filter = { took: true, errors: true, field: () => true }

/** The longest lists that clients send have about 100 characters. */
const FILTER_CHARACTERS_MAX = 1_024

/**
 * Reads a list such as `errors,items.*.error,items.*.status` of Filebeat and Logstash. Lists with exclusions or with other wildcards are not
 * supported: the response has everything then, which is valid for all clients.
 */
export function readFilter(list: unknown): Filter {
  if (typeof list !== 'string' || list === '' || list.length > FILTER_CHARACTERS_MAX) return everything
  const paths = list.split(',').map((path) => path.trim().split('.'))
  if (paths.some((path) => !isSupported(path))) return everything
  const has = (name: string): boolean => paths.some(([first]) => first === name)
  const fields = new Set(paths.filter(([first]) => first === 'items').map(([, , field = '*']) => field))
  return {
    took: has('took'),
    errors: has('errors'),
    field: (name) => fields.has(name) || fields.has('*') || fields.has('**'),
  }
}

/** `took`, `items`, `items.*`, `items.*.status` or `items.*.error.type`. */
function isSupported([first = '', action = '*', field = '*']: readonly string[]): boolean {
  if (!/^[a-z]+$/.test(first)) return false
  return first !== 'items' || ((action === '*' || action === '**') && /^(\*\*?|[a-z_]+)$/.test(field))
}

/** Items that are made in one step: about 2 ms. */
const ITEMS_PER_STEP = 1_024

/** The response to a bulk request: an item for each action. */
export async function bulkAnswer(
  items: readonly BulkItem[],
  { rejected }: Outcome,
  filter: Filter,
  { hold, nextTurn }: Pick<Answering, 'hold' | 'nextTurn'>,
): Promise<Answer> {
  const body: Buffer[] = []
  function add(text: string): void {
    const bytes = Buffer.from(text)
    hold(bytes.length)
    body.push(bytes)
  }

  const head = [
    ...(filter.took ? ['"took":0'] : []),
    ...(filter.errors ? [`"errors":${rejected.size > 0}`] : []),
  ]
  // Many items are the same.
  let last: BulkItem | undefined
  let lastText = ''
  const textOf = (item: BulkItem, invalid: EntryError | undefined): string => {
    if (invalid !== undefined) return itemJson(item, invalid, filter)
    if (item !== last) lastText = itemJson(item, undefined, filter)
    last = item
    return lastText
  }
  let separator = `{${[...head, '"items":['].join(',')}`
  for (let start = 0; start < items.length; start += ITEMS_PER_STEP) {
    if (items.length > ITEMS_PER_STEP) await nextTurn()
    const texts = items
      .slice(start, start + ITEMS_PER_STEP)
      .map((item, at) => textOf(item, rejected.get(start + at)))
      .filter((text) => text !== '')
    if (texts.length === 0) continue
    add(separator + texts.join(','))
    separator = ','
  }
  add(body.length === 0 ? `{${head.join(',')}}` : ']}')
  return elasticAnswer(200, body)
}

/** Stands for no index: Elastic's client for Java discards a response that has null. */
const NO_INDEX = 'sluice'
/** Enough to find the cause. A reason may have a name that the client chose, and a response has up to 16 Ki of them. */
const REASON_CHARACTERS_MAX = 160

/** Empty if no field of the item is asked for: Elasticsearch omits such items. */
function itemJson(item: BulkItem, invalid: EntryError | undefined, { field }: Filter): string {
  const { action, id } = item
  const fields: string[] = []
  if (field('_index')) fields.push(`"_index":${JSON.stringify(shownIndex(item) ?? NO_INDEX)}`)
  if (field('_id')) fields.push(`"_id":${JSON.stringify(id)}`)
  if (field('status')) fields.push(`"status":${invalid === undefined ? 201 : 400}`)
  if (invalid === undefined) {
    if (field('result')) fields.push('"result":"created"')
  } else if (field('error')) {
    const { type, reason } =
      errorOfAction(item) ?? errorOf('document_parsing_exception', describeError(invalid, 'The document'))
    fields.push(`"error":${JSON.stringify(errorOf(type, shorten(reason, REASON_CHARACTERS_MAX)))}`)
  }
  return fields.length === 0 ? '' : `{"${action}":{${fields.join(',')}}}`
}

/** Of an invalid name of an index in an item and in its reason, so that the fault is in the reason too. 16 Ki items may have it. */
const SHOWN_CHARACTERS_MAX = 41

function shownIndex({ index, indexFault }: BulkItem): string | null {
  return index === null || indexFault === undefined ? index : shorten(index, SHOWN_CHARACTERS_MAX)
}

/** What is wrong with the action. Undefined if its document decides. */
function errorOfAction(item: BulkItem): ElasticError | undefined {
  const { action, indexFault } = item
  if (action === 'update' || action === 'delete')
    return errorOf('action_request_validation_exception', 'The action must be index or create')
  if (indexFault === undefined) return undefined
  return errorOf('invalid_index_name_exception', `Invalid index name [${shownIndex(item)}], ${indexFault}`)
}

/** The string itself, or its beginning and an ellipsis if it is longer. */
function shorten(string: string, charactersMax: number): string {
  return string.length <= charactersMax ? string : `${string.slice(0, charactersMax - 1).toWellFormed()}…`
}
