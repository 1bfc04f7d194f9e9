import { isUtf8 } from 'node:buffer'
import { addMember, isPlainObject, type Members } from '@sluice/records'
import type { SourceRecord } from '../../intake/records.ts'
import { parseFound, search, type Shape } from '../../intake/value-finder.ts'
import { Problem } from '../../problems.ts'
import { type Line, linesOf, recordOf, rejection, toEntry } from '../shippers.ts'
import { type ElasticError, errorOf, type Item, shorten } from './bulk-answer.ts'

const whole: Shape = { take: 'value' }

/** Of an invalid name of an index in an item and in its reason, so that the fault is in the reason too. 16 Ki items may have it. */
const SHOWN_CHARACTERS_MAX = 41
/** The longest name of an index. */
const NAME_BYTES_MAX = 255

/** The longest name of an index has 255 bytes, the longest id of Elasticsearch 512. An action has no other long string. */
const ACTION_BYTES_MAX = 8 * 1024

/**
 * Reads the lines of a bulk request in pairs: an action, and the document to store.
 *
 * @param pathIndex the index of actions that name no other
 * @param items gets an item for each record, in the same order
 * @throws Problem `invalid_json` for an action that is malformed: what its line is about is not known, so nothing is stored; `empty_body` if
 *   there is no action
 */
export function* readBulk(
  body: Buffer,
  pathIndex: string | null,
  items: Item[],
): Generator<SourceRecord | undefined> {
  let number = 0
  let item: Item | undefined
  for (const line of linesOf(body)) {
    if (line === undefined) {
      yield undefined
      continue
    }
    number += 1
    if (item !== undefined) {
      items.push(item)
      yield yield* readDocument(body, line, item)
      item = undefined
      continue
    }
    item = yield* readAction(body, line, pathIndex, number)
    // A deletion is not followed by a document.
    if (item.action === 'delete') {
      items.push(item)
      item = undefined
      yield invalidAction
    } else yield undefined
  }
  if (item !== undefined) throw malformed(number, 'The document after the action is missing.')
  if (items.length === 0) throw new Problem('empty_body', 'no requests added')
}

function* readAction(
  body: Buffer,
  { start, end }: Line,
  pathIndex: string | null,
  number: number,
): Generator<undefined, Item> {
  if (end - start > ACTION_BYTES_MAX || !isUtf8(body.subarray(start, end)))
    throw malformed(number, 'Expected an object.')
  const finder = yield* search(body, whole, start, end)
  const [found] = finder.found
  if (finder.isInvalid || found === undefined) throw malformed(number, finder.fault)
  const parsed = parseFound(body, found)
  const value = 'value' in parsed && isPlainObject(parsed.value) ? parsed.value : {}
  const [action, ...others] = Object.keys(value)
  const target = action === undefined ? undefined : value[action]
  if (action === undefined || others.length > 0 || !actions.has(action) || !isPlainObject(target))
    throw malformed(number, 'Expected one of create, delete, index and update, with an object.')
  const index = nameOf(target, '_index', number) ?? pathIndex
  const id = nameOf(target, '_id', number)
  const fault = index === null ? undefined : faultOfIndexName(index)
  if (fault === undefined && isStored(action)) return { action, index, id }
  const shown = index === null || fault === undefined ? index : shorten(index, SHOWN_CHARACTERS_MAX)
  return { action, index: shown, id, error: errorOfAction(action, shown, fault) }
}

/** Elasticsearch reads a number as its JSON. */
function nameOf(target: Members, field: string, number: number): string | null {
  const value = target[field] ?? null
  if (value === null || typeof value === 'string') return value
  if (isPlainObject(value) || Array.isArray(value))
    throw malformed(number, `Expected a simple value for field [${field}].`)
  return JSON.stringify(value)
}

/** Documents are stored without an index as well: Sluice has none. */
const isStored = (action: string): boolean => action === 'index' || action === 'create'

function errorOfAction(action: string, shown: string | null, fault: string | undefined): ElasticError {
  return isStored(action)
    ? errorOf('invalid_index_name_exception', `Invalid index name [${shown}], ${fault}`)
    : errorOf('action_request_validation_exception', 'The action must be index or create')
}

/** What no name of an index may match, and what Elasticsearch says about it. */
const indexRules: readonly (readonly [RegExp, fault: string])[] = [
  [/^$/, 'must not be empty'],
  [
    /[\\/*?"<>| ,]/,
    String.raw`must not contain the following characters ['\','/','*','?','"','<','>','|',' ',',']`,
  ],
  // As JSON, each would take six bytes in each item of the response.
  [/\p{Cc}/u, 'must not contain control characters'],
  [/#/, "must not contain '#'"],
  [/:/, "must not contain ':'"],
  [/^[_+-]/, "must not start with '_', '-', or '+'"],
  [/^\.\.?$/, "must not be '.' or '..'"],
]

/**
 * What Elasticsearch does not like about the name of an index, in its words. Names with a date (`<logs-{now/d}>`) are not calculated, so they
 * are not allowed.
 */
function faultOfIndexName(name: string): string | undefined {
  const bytes = Buffer.byteLength(name)
  if (bytes > NAME_BYTES_MAX) return `index name is too long, (${bytes} > ${NAME_BYTES_MAX})`
  const broken = indexRules.find(([rule]) => rule.test(name))
  if (broken !== undefined) return broken[1]
  return name === name.toLowerCase() ? undefined : 'must be lowercase'
}

function* readDocument(body: Buffer, { start, end }: Line, item: Item): Generator<undefined, SourceRecord> {
  if (item.error !== undefined) return invalidAction
  if (!isUtf8(body.subarray(start, end))) return rejection('invalid_json', 'must be UTF-8')
  const finder = yield* search(body, whole, start, end)
  const [found] = finder.found
  if (finder.isInvalid || found === undefined)
    return rejection('invalid_json', `is not JSON. ${finder.fault}`)
  return recordOf(body, found, (document) => ({ entry: toEntry(withItem(document, item)) }))
}

/** Keeps the names of the index and of the document. */
function withItem(document: Members, { index, id }: Item): Members {
  if (index !== null) addMember(document, '_index', index)
  if (id !== null) addMember(document, '_id', id)
  return document
}

const actions: ReadonlySet<string> = new Set(['create', 'delete', 'index', 'update'])
/** The item has the reason. */
const invalidAction = rejection('not_allowed', 'is not stored')

function malformed(line: number, what: string): Problem {
  return new Problem('invalid_json', `Malformed action/metadata line [${line}]. ${what}`)
}
