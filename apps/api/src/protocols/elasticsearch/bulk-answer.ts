import type { EntryError } from '@sluice/schema'
import type { Answer } from '../../answer.ts'
import type { Outcome } from '../../intake/records.ts'
import { elasticAnswer, errorOf } from './answers.ts'
import type { Filter } from './filter-path.ts'

/** An action of a bulk request, and the document that it is about. */
export interface Item {
  readonly action: string
  /** The index of the action, or else that of the path. */
  readonly index: string | null
  readonly id: string | null
}

/** Errors that are about the action. Documents that Elasticsearch cannot parse have another type. */
export const UNSUPPORTED_ACTION = 'must be index or create'

/** The answer to a bulk request: an item for each action. */
export function bulkAnswer(items: readonly Item[], { rejected }: Outcome, filter: Filter): Answer {
  const parts: string[] = []
  if (filter.took) parts.push('"took":0')
  if (filter.errors) parts.push(`"errors":${rejected.size > 0}`)
  const texts: string[] = []
  const textOf = cached((text) => JSON.stringify(text))
  const errorText = cached((reason) => JSON.stringify(itemError(reason)))
  for (const [at, item] of items.entries()) {
    const error = rejected.get(at)
    const fields = fieldsOf(item, error && errorText(reasonOf(error)), filter, textOf)
    // Elasticsearch omits items without fields as well.
    if (fields !== '') texts.push(`{"${item.action}":{${fields}}}`)
  }
  if (texts.length > 0) parts.push(`"items":[${texts.join(',')}]`)
  return elasticAnswer(200, `{${parts.join(',')}}`)
}

/** Most items have the same texts. An answer may have 16 Ki items, and is made in one step. */
function cached(make: (text: string) => string): (text: string) => string {
  const known = new Map<string, string>()
  return (text) => {
    const found = known.get(text)
    if (found !== undefined) return found
    const made = make(text)
    known.set(text, made)
    return made
  }
}

/** @param error JSON */
function fieldsOf(
  { index, id }: Item,
  error: string | undefined,
  { field }: Filter,
  textOf: (text: string) => string,
): string {
  const fields: string[] = []
  if (field('_index')) fields.push(`"_index":${index === null ? 'null' : textOf(index)}`)
  if (field('_id')) fields.push(`"_id":${id === null ? 'null' : JSON.stringify(id)}`)
  if (field('status')) fields.push(`"status":${error === undefined ? 201 : 400}`)
  if (error === undefined) {
    if (field('result')) fields.push('"result":"created"')
  } else if (field('error')) fields.push(`"error":${error}`)
  return fields.join(',')
}

function reasonOf({ path, message }: EntryError): string {
  return message === UNSUPPORTED_ACTION
    ? UNSUPPORTED_REASON
    : `${path === '' ? 'The document' : path} ${message}`
}

const UNSUPPORTED_REASON = `The action ${UNSUPPORTED_ACTION}`

function itemError(reason: string): object {
  const type =
    reason === UNSUPPORTED_REASON ? 'action_request_validation_exception' : 'document_parsing_exception'
  return errorOf(type, reason)
}
