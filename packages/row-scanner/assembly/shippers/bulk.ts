import { copy, isEqual } from '../bytes'
import * as codes from '../codes'
import { Decoded } from '../draft'
import { ENTRY } from '../errors'
import { isIndexName } from '../host'
import { Line } from '../lines'
import { literal } from '../literals'
import { memberOf, named } from '../loggers/members'
import { Mapper, record } from '../loggers/mapper'
import { NAME_SET_BYTES, NameSet } from '../loggers/name-set'
import { ITEM_NUMBERS, ITEMS, ITEMS_MAX, ORIGIN, TAPE } from '../memory'
import { countNames } from '../names'
import { MALFORMED_ACTION, Records } from '../records'
import { Node, NODE_BYTES, NULL, OBJECT, STRING, TEXT } from '../tape'
import { readText } from '../text'
import { isUtf8 } from '../utf8'

/** `actions` in `src/bulk.ts` has the same order. */
const ACTIONS = NameSet.make(memory.data(NAME_SET_BYTES, 16), 'index create update delete')
const CREATE: i32 = 1
const DELETE: i32 = 3
const NOT_STORED: string = 'is not stored'
const NOT_AN_ACTION: string = 'Expected one of create, delete, index and update, with an object.'

const INDEX_NAME = literal('_index')
const ID_NAME = literal('_id')
/** The longest name of an index has 255 bytes, the longest id of Elasticsearch 512. An action has no other long string. */
const ACTION_BYTES_MAX: i32 = 8 * 1024

/** Why an action is malformed; empty if it is not JSON. */
export let malformation: string = ''
/** Of the lines that are not empty, from 1. */
export let malformedLine: i32 = 0

/** An action. JavaScript reads it, and words what is wrong with the name of its index. The nodes of the index and of the id follow. */
@unmanaged
class Item {
  action!: i32
  isIndexInvalid!: i32

  get index(): i32 {
    return <i32>changetype<usize>(this) + 8
  }

  get id(): i32 {
    return this.index + NODE_BYTES
  }
}
/** The action line that was read last; 0 if the next one must be read. Programs often repeat it. */
let lastStart: i32 = 0
let lastBytes: i32 = 0
const pathIndex = memory.data(NODE_BYTES)

/**
 * Scans the lines of a bulk request in pairs: an action, and the document to store.
 *
 * @param pathIndexBytes the length of the JSON at `ORIGIN`: the index of actions that name no other, as a string, or null
 * @param isAllUtf8 whether the body is UTF-8
 */
export function scanBulk(bytes: i32, pathIndexBytes: i32, isAllUtf8: bool): i32 {
  Records.clear()
  lastStart = 0
  malformedLine = 0
  readText(ORIGIN, ORIGIN + pathIndexBytes)
  v128.store(pathIndex, v128.load(TAPE))
  let isDocument = false
  let result = 0
  for (Line.begin(bytes); result === 0 && Line.find();) {
    malformedLine += 1
    const isText = isAllUtf8 || isUtf8(Line.start, Line.end)
    if (isDocument) {
      isDocument = false
      result = takeDocument(isText)
      continue
    }
    result = readAction(isText)
    isDocument = itemAt(Records.count).action !== DELETE
    if (result === 0 && !isDocument) result = Records.reject(codes.NOT_ALLOWED, ENTRY, NOT_STORED)
  }
  Records.finish()
  return result === 0 && isDocument ? malformed('The document after the action is missing.') : result
}

function itemAt(index: i32): Item {
  return changetype<Item>(ITEMS + min(index, ITEMS_MAX) * (ITEM_NUMBERS * 4))
}

function malformed(reason: string): i32 {
  malformation = reason
  return MALFORMED_ACTION
}

function readAction(isText: bool): i32 {
  const start = Line.start
  const bytes = Line.end - start
  const item = itemAt(Records.count)
  if (lastStart !== 0 && bytes === lastBytes && isEqual(lastStart, start, bytes)) {
    copy(changetype<i32>(item), changetype<i32>(itemAt(Records.count - 1)), ITEM_NUMBERS * 4)
    return 0
  }
  lastStart = 0
  if (bytes > ACTION_BYTES_MAX || !isText) return malformed('Expected an object.')
  if (!readText(start, Line.end)) return malformed('')
  if (Node.of(TAPE).kind !== OBJECT || countNames(TAPE) === 0) return malformed(NOT_AN_ACTION)
  // Elasticsearch ignores what follows the first member, such as the `attempts` of winston-elasticsearch.
  const name = Node.of(TAPE + NODE_BYTES)
  const target = name.next
  item.action = ACTIONS.placeOf(name)
  if (item.action < 0 || Node.of(target).kind !== OBJECT) return malformed(NOT_AN_ACTION)
  if (!readName(memberOf(target, INDEX_NAME), item.index))
    return malformed('Expected a simple value for field [_index].')
  if (!readName(memberOf(target, ID_NAME), item.id))
    return malformed('Expected a simple value for field [_id].')
  const index = Node.of(item.index)
  if (index.kind === NULL) v128.store(item.index, v128.load(pathIndex))
  item.isIndexInvalid = 0
  if (index.kind !== NULL && !isLastIndex(index)) {
    Decoded.read(index)
    item.isIndexInvalid = isIndexName(Decoded.start, Decoded.end) ? 0 : 1
  }
  lastStart = start
  lastBytes = bytes
  return 0
}

/** Whether the index is valid since that of the item before was: JavaScript looks at each name of an index once. */
function isLastIndex(index: Node): bool {
  if (Records.count === 0 || itemAt(Records.count - 1).isIndexInvalid !== 0) return false
  const last = Node.of(itemAt(Records.count - 1).index)
  return last.bytes === index.bytes && isEqual(last.start, index.start, index.bytes)
}

/** Keeps a simple value. Elasticsearch reads a number as its JSON. @returns false for an object or an array */
function readName(address: i32, to: i32): bool {
  const node = Node.of(to)
  node.head = NULL
  if (address === 0) return true
  if (Node.of(address).isContainer) return false
  v128.store(to, v128.load(address))
  if (node.kind !== NULL && node.kind !== STRING) node.head = TEXT
  return true
}

function takeDocument(isText: bool): i32 {
  const item = itemAt(Records.count)
  if (item.isIndexInvalid !== 0 || item.action > CREATE)
    return Records.reject(codes.NOT_ALLOWED, ENTRY, NOT_STORED)
  if (!isText) return Records.reject(codes.INVALID_JSON, ENTRY, 'must be UTF-8')
  if (!readText(Line.start, Line.end)) return Records.rejectText()
  if (Node.of(TAPE).kind !== OBJECT) return Records.reject(codes.WRONG_TYPE, ENTRY)
  const index = Node.of(item.index)
  const id = Node.of(item.id)
  Mapper.begin(TAPE)
  record.addAll(TAPE)
  // The names of the index and of the document are kept.
  if (index.kind !== NULL) record.add(named(INDEX_NAME, item.index))
  if (id.kind !== NULL) record.add(named(ID_NAME, item.id))
  Mapper.map()
  return Mapper.take()
}
