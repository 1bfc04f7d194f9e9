import type { EntryError } from '@sluice/schema'
import type { Answer } from '../../answer.ts'
import type { Outcome } from '../../intake/records.ts'
import type { Answering } from '../protocol.ts'
import { describeError } from '../shippers.ts'

/** Elastic's clients reject responses without this header. */
const headers = { 'x-elastic-product': 'Elasticsearch' }

/** @param body JSON */
export function elasticAnswer(status: number, body: Answer['body']): Answer {
  return { status, type: 'application/json; charset=utf-8', body, headers }
}

export interface ElasticError {
  readonly type: string
  readonly reason: string
}

export const errorOf = (type: string, reason: string): ElasticError => ({ type, reason })

/** An action of a bulk request, and the document that it is about. */
export interface Item {
  readonly action: string
  /** The index of the action, or else of the path. Null if there is none. Shortened if it is invalid. */
  readonly index: string | null
  readonly id: string | null
  /** What is wrong with the action. Undefined if its document decides. */
  readonly error?: ElasticError
}

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
  items: readonly Item[],
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
  let separator = `{${[...head, '"items":['].join(',')}`
  for (let start = 0; start < items.length; start += ITEMS_PER_STEP) {
    if (items.length > ITEMS_PER_STEP) await nextTurn()
    const texts = items
      .slice(start, start + ITEMS_PER_STEP)
      .map((item, at) => itemJson(item, rejected.get(start + at), filter))
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
function itemJson(
  { action, index, id, error: ownError }: Item,
  invalid: EntryError | undefined,
  { field }: Filter,
): string {
  const fields: string[] = []
  if (field('_index')) fields.push(`"_index":${JSON.stringify(index ?? NO_INDEX)}`)
  if (field('_id')) fields.push(`"_id":${JSON.stringify(id)}`)
  if (field('status')) fields.push(`"status":${invalid === undefined ? 201 : 400}`)
  if (invalid === undefined) {
    if (field('result')) fields.push('"result":"created"')
  } else if (field('error')) {
    const { type, reason } =
      ownError ?? errorOf('document_parsing_exception', describeError(invalid, 'The document'))
    fields.push(`"error":${JSON.stringify(errorOf(type, shorten(reason, REASON_CHARACTERS_MAX)))}`)
  }
  return fields.length === 0 ? '' : `{"${action}":{${fields.join(',')}}}`
}

/** The string itself, or its beginning and an ellipsis if it is longer. */
export function shorten(string: string, charactersMax: number): string {
  return string.length <= charactersMax ? string : `${string.slice(0, charactersMax - 1).toWellFormed()}…`
}
