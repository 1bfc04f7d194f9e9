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
  for (const [at, item] of items.entries()) {
    const fields = fieldsOf(item, rejected.get(at), filter)
    // Elasticsearch omits items without fields as well.
    if (fields !== '') texts.push(`{"${item.action}":{${fields}}}`)
  }
  if (texts.length > 0) parts.push(`"items":[${texts.join(',')}]`)
  return elasticAnswer(200, `{${parts.join(',')}}`)
}

function fieldsOf({ index, id }: Item, error: EntryError | undefined, { field }: Filter): string {
  const fields: string[] = []
  if (field('_index')) fields.push(`"_index":${JSON.stringify(index)}`)
  if (field('_id')) fields.push(`"_id":${JSON.stringify(id)}`)
  if (field('status')) fields.push(`"status":${error === undefined ? 201 : 400}`)
  if (error === undefined) {
    if (field('result')) fields.push('"result":"created"')
  } else if (field('error')) fields.push(`"error":${JSON.stringify(itemError(error))}`)
  return fields.join(',')
}

function itemError({ path, message }: EntryError): object {
  const type =
    message === UNSUPPORTED_ACTION ? 'action_request_validation_exception' : 'document_parsing_exception'
  return errorOf(type, `${path === '' ? 'The document' : path} ${message}`)
}
