import type { EntryError } from '@sluice/schema'
import type { Answer } from '../../answer.ts'
import type { Outcome } from '../../intake/records.ts'
import type { Answering } from '../protocol.ts'
import { elasticAnswer } from './answers.ts'
import type { Filter } from './filter-path.ts'
import { type ItemError, ItemErrors } from './item-errors.ts'

/** An action of a bulk request, and the document that it is about. */
export interface Item {
  readonly action: string
  /** The index of the action, or else that of the path. Null if there is none. Shortened if it is invalid. */
  readonly index: string | null
  readonly id: string | null
  /** What is wrong with the action. Undefined if its document decides. */
  readonly error?: ItemError
}

/** Stands for no index: Elastic's client for Java discards an answer that has null. */
const NO_INDEX = 'sluice'

/** Items that are made in one turn of the event loop: about 2 ms. */
const ITEMS_PER_STEP = 1_024

/** The answer to a bulk request: an item for each action. */
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

  const head = headOf(rejected.size > 0, filter)
  const writer = new ItemWriter(filter)
  let separator = `{${head}${head === '' ? '' : ','}"items":[`
  for (let start = 0; start < items.length; start += ITEMS_PER_STEP) {
    if (items.length > ITEMS_PER_STEP) await nextTurn()
    const texts = items
      .slice(start, start + ITEMS_PER_STEP)
      .map((item, at) => writer.json(item, rejected.get(start + at)))
      .filter((text) => text !== '')
    if (texts.length === 0) continue
    add(separator + texts.join(','))
    separator = ','
  }
  add(body.length === 0 ? `{${head}}` : ']}')
  return elasticAnswer(200, body)
}

function headOf(hasErrors: boolean, filter: Filter): string {
  return [...(filter.took ? ['"took":0'] : []), ...(filter.errors ? [`"errors":${hasErrors}`] : [])].join(',')
}

/** Writes the items of one answer. */
class ItemWriter {
  readonly #filter: Filter
  readonly #errors = new ItemErrors()
  /** The last index. Most items have the same. */
  #index = NO_INDEX
  #indexJson = JSON.stringify(NO_INDEX)

  constructor(filter: Filter) {
    this.#filter = filter
  }

  /** Empty if no field of the item is asked for: Elasticsearch omits such items. */
  json({ action, index, id, error: ownError }: Item, entryError: EntryError | undefined): string {
    const error = entryError && (ownError ?? documentError(entryError))
    const { field } = this.#filter
    const fields: string[] = []
    if (field('_index')) fields.push(`"_index":${this.#jsonOfIndex(index ?? NO_INDEX)}`)
    if (field('_id')) fields.push(`"_id":${JSON.stringify(id)}`)
    if (field('status')) fields.push(`"status":${error === undefined ? 201 : 400}`)
    if (error === undefined) {
      if (field('result')) fields.push('"result":"created"')
    } else if (field('error')) fields.push(`"error":${this.#errors.json(error)}`)
    return fields.length === 0 ? '' : `{"${action}":{${fields.join(',')}}}`
  }

  #jsonOfIndex(index: string): string {
    if (index !== this.#index) {
      this.#index = index
      this.#indexJson = JSON.stringify(index)
    }
    return this.#indexJson
  }
}

function documentError({ path, message }: EntryError): ItemError {
  return {
    type: 'document_parsing_exception',
    reason: `${path === '' ? 'The document' : path} ${message}`,
  }
}
