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

/** Items that are made in one step: about 2 ms. */
const ITEMS_PER_STEP = 1_024

/**
 * The response to a bulk request: an item for each action.
 *
 * @param hasErrors whether it says that there are errors, if there are any
 */
export async function bulkAnswer(
  items: readonly BulkItem[],
  { rejected }: Outcome,
  hasErrors: boolean,
  { hold, nextTurn }: Pick<Answering, 'hold' | 'nextTurn'>,
): Promise<Answer> {
  const body: Buffer[] = []
  function add(text: string): void {
    const bytes = Buffer.from(text)
    hold(bytes.length)
    body.push(bytes)
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
  return elasticAnswer(200, body)
}

/** Stands for no index: Elastic's client for Java discards a response that has null. */
const NO_INDEX = 'sluice'
/** Enough to find the cause. A reason may have a name that the client chose, and a response has up to 16 Ki of them. */
const REASON_CHARACTERS_MAX = 160

function itemJson(item: BulkItem, invalid: EntryError | undefined): string {
  const { action, id } = item
  const place = `"_index":${JSON.stringify(shownIndex(item) ?? NO_INDEX)},"_id":${JSON.stringify(id)}`
  if (invalid === undefined) return `{"${action}":{${place},"status":201,"result":"created"}}`
  const { type, reason } =
    errorOfAction(item) ?? errorOf('document_parsing_exception', describeError(invalid, 'The document'))
  const error = JSON.stringify(errorOf(type, shorten(reason, REASON_CHARACTERS_MAX)))
  return `{"${action}":{${place},"status":400,"error":${error}}}`
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
