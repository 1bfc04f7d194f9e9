import { COLON, DOT, MINUS, PLUS, QUOTE, SLASH, BACKSLASH, SPACE, COMMA } from '../bytes'
import * as codes from '../codes'
import { Decoded } from '../draft'
import { ACTION, BYTES, ENTRY } from '../errors'
import { isLowerCase } from '../host'
import { Line } from '../lines'
import * as constants from '../loggers/constants'
import { isNamed, memberOf } from '../loggers/members'
import { hasTooManyNames, isTooDeep, Mapper } from '../loggers/mapper'
import { BODY, ITEM_NUMBERS, ITEMS, ITEMS_MAX, ORIGIN, TAPE } from '../memory'
import { Metadata } from '../metadata'
import { countNames } from '../names'
import { MALFORMED_ACTION, Records } from '../records'
import { LONE } from '../strings'
import { Node, NODE_BYTES, NULL, OBJECT, STRING, TEXT } from '../tape'
import { readText } from '../text'
import { isUtf8 } from '../utf8'

// Why an action is malformed. `malformations` in `src/bulk.ts` has the same order.
const NOT_AN_OBJECT: i32 = 0
const NOT_JSON: i32 = 1
const NOT_AN_ACTION: i32 = 2
const INDEX_NOT_SIMPLE: i32 = 3
const ID_NOT_SIMPLE: i32 = 4
const NO_DOCUMENT: i32 = 5

// The actions. `actions` in `src/bulk.ts` has the same order.
const INDEX: i32 = 0
const CREATE: i32 = 1
const UPDATE: i32 = 2
const DELETE: i32 = 3

// What no name of an index may have. `indexFaults` in `src/bulk.ts` has the same order.
const TOO_LONG: i32 = 1
const EMPTY: i32 = 2
const CHARACTER: i32 = 3
const CONTROL: i32 = 4
const HASH: i32 = 5
const HAS_COLON: i32 = 6
const START: i32 = 7
const DOTS: i32 = 8
const UPPER: i32 = 9
const INDEX_BYTES_MAX: i32 = 255

/** The longest name of an index has 255 bytes, the longest id of Elasticsearch 512. An action has no other long string. */
const ACTION_BYTES_MAX: i32 = 8 * 1024

export class Malformed {
  static reason: i32 = 0
  /** Of the lines that are not empty, from 1. */
  static line: i32 = 0
}

/** An action, and what is wrong with the name of its index. JavaScript reads it. */
@unmanaged
class Item {
  action!: i32
  /** A number of the list above; 0 if there is no fault. */
  fault!: i32
  indexHead!: i32
  indexStart!: i32
  indexEnd!: i32
  idHead!: i32
  idStart!: i32
  idEnd!: i32
}
let items: i32 = 0
/** The action line that was read last; 0 if the next one must be read. Programs often repeat it. */
let lastStart: i32 = 0
let lastBytes: i32 = 0

/**
 * Scans the lines of a bulk request in pairs: an action, and the document to store.
 *
 * @param pathIndex the length of the JSON at `ORIGIN`: the index of actions that name no other, as a string, or null
 * @param isAllUtf8 whether the body is UTF-8
 */
export function scanBulk(bytes: i32, pathIndex: i32, isAllUtf8: bool): i32 {
  Records.clear()
  items = 0
  lastStart = 0
  Malformed.line = 0
  readText(ORIGIN, ORIGIN + pathIndex)
  constants.copyNode(constants.PATH_INDEX, TAPE)
  const end = BODY + bytes
  let isDocument = false
  for (let at = BODY; Line.find(at, end); at = Line.next) {
    Malformed.line += 1
    // A text ends at this byte.
    store<u8>(Line.end, 0)
    let result = 0
    if (isDocument) {
      isDocument = false
      result = takeDocument(isAllUtf8)
    } else if (!readAction(isAllUtf8)) return MALFORMED_ACTION
    else if (itemAt(items).action === DELETE) result = rejectItem()
    else isDocument = true
    if (result !== 0) return result
  }
  Records.finish()
  return isDocument ? malformed(NO_DOCUMENT) : 0
}

function itemAt(index: i32): Item {
  return changetype<Item>(ITEMS + min(index, ITEMS_MAX) * (ITEM_NUMBERS * 4))
}

function malformed(reason: i32): i32 {
  Malformed.reason = reason
  return MALFORMED_ACTION
}

function fail(reason: i32): bool {
  Malformed.reason = reason
  return false
}

function readAction(isAllUtf8: bool): bool {
  const start = Line.start
  const bytes = Line.end - start
  const item = itemAt(items)
  if (lastStart !== 0 && bytes === lastBytes && memory.compare(lastStart, start, bytes) === 0) {
    memory.copy(changetype<i32>(item), changetype<i32>(itemAt(items - 1)), ITEM_NUMBERS * 4)
    return true
  }
  lastStart = 0
  if (bytes > ACTION_BYTES_MAX || (!isAllUtf8 && !isUtf8(start, Line.end))) return fail(NOT_AN_OBJECT)
  if (!readText(start, Line.end)) return fail(NOT_JSON)
  if (Node.of(TAPE).kind !== OBJECT || countNames(TAPE) !== 1) return fail(NOT_AN_ACTION)
  const name = Node.of(TAPE + NODE_BYTES)
  const target = name.next
  const action = actionOf(name)
  if (action < 0 || Node.of(target).kind !== OBJECT) return fail(NOT_AN_ACTION)
  if (!readName(memberOf(target, '_index'), constants.INDEX_VALUE)) return fail(INDEX_NOT_SIMPLE)
  if (!readName(memberOf(target, '_id'), constants.ID_VALUE)) return fail(ID_NOT_SIMPLE)
  if (Node.of(constants.INDEX_VALUE).kind === NULL)
    constants.copyNode(constants.INDEX_VALUE, constants.PATH_INDEX)
  const index = Node.of(constants.INDEX_VALUE)
  const id = Node.of(constants.ID_VALUE)
  item.action = action
  item.fault = index.kind === NULL ? 0 : faultOfIndex(index)
  item.indexHead = index.head
  item.indexStart = index.start
  item.indexEnd = index.end
  item.idHead = id.head
  item.idStart = id.start
  item.idEnd = id.end
  lastStart = start
  lastBytes = bytes
  return true
}

function actionOf(name: Node): i32 {
  if (isNamed(name, 'create')) return CREATE
  if (isNamed(name, 'index')) return INDEX
  if (isNamed(name, 'update')) return UPDATE
  return isNamed(name, 'delete') ? DELETE : -1
}

/** Keeps a simple value. Elasticsearch reads a number as its JSON. @returns false for an object or an array */
function readName(address: i32, to: i32): bool {
  const node = Node.of(to)
  node.head = NULL
  if (address === 0) return true
  if (Node.of(address).isContainer) return false
  constants.copyNode(to, address)
  if (node.kind !== NULL && node.kind !== STRING) node.head = TEXT
  return true
}

/** What Elasticsearch does not like about the name of an index. Names with a date (`<logs-{now/d}>`) are not calculated. */
function faultOfIndex(name: Node): i32 {
  Decoded.read(name)
  const start = Decoded.start
  const end = Decoded.end
  if (end - start > INDEX_BYTES_MAX) return TOO_LONG
  if (start === end) return EMPTY
  let fault = UPPER + 1
  let isAscii = true
  let hasUpper = false
  for (let at = start; at < end; at += 1) {
    const byte = load<u8>(at)
    if (byte >= 0x80) isAscii = false
    if (byte >= 0x41 && byte <= 0x5a) hasUpper = true
    // Control characters are those of ASCII, and U+0080 to U+009F.
    const isControl = byte < SPACE || byte === 0x7f || (byte === 0xc2 && load<u8>(at + 1) < 0xa0)
    if (isForbidden(byte)) fault = CHARACTER
    else if (isControl) fault = min(fault, CONTROL)
    else if (byte === 0x23) fault = min(fault, HASH)
    else if (byte === COLON) fault = min(fault, HAS_COLON)
  }
  if (fault <= HAS_COLON) return fault
  const first = load<u8>(start)
  if (first === 0x5f || first === PLUS || first === MINUS) return START
  if (first === DOT && (end === start + 1 || (end === start + 2 && load<u8>(start + 1) === DOT))) return DOTS
  return hasUpper || (!isAscii && !isLowerCase(start, end)) ? UPPER : 0
}

function isForbidden(byte: u8): bool {
  switch (byte) {
    case BACKSLASH:
    case SLASH:
    case 0x2a:
    case 0x3f:
    case QUOTE:
    case 0x3c:
    case 0x3e:
    case 0x7c:
    case SPACE:
    case COMMA:
      return true
    default:
      return false
  }
}

/** Rejects the record of the current action, whose item has the reason. */
function rejectItem(): i32 {
  items += 1
  Metadata.discard()
  return Records.reject(codes.NOT_ALLOWED, ACTION)
}

function takeDocument(isAllUtf8: bool): i32 {
  const item = itemAt(items)
  if (item.fault !== 0 || item.action > CREATE) return rejectItem()
  items += 1
  Metadata.discard()
  const start = Line.start
  const end = Line.end
  if (!isAllUtf8 && !isUtf8(start, end)) return Records.reject(codes.INVALID_JSON, BYTES)
  if (!readText(start, end)) return Records.rejectText(start, end)
  if (Node.of(TAPE).kind !== OBJECT) return Records.reject(codes.WRONG_TYPE, ENTRY)
  if (isTooDeep(TAPE)) return Records.reject(codes.TOO_DEEP, ENTRY)
  if (hasTooManyNames(TAPE)) return Records.reject(codes.TOO_MANY_NAMES, ENTRY)
  const index = Node.of(constants.INDEX_VALUE)
  const id = Node.of(constants.ID_VALUE)
  Mapper.begin(countNames(TAPE), Node.of(TAPE).has(LONE) || ((index.head | id.head) & LONE) !== 0)
  const record = Mapper.record
  record.addAll(TAPE)
  // The names of the index and of the document are kept.
  if (index.kind !== NULL) record.addFree(constants.named(constants.INDEX, constants.INDEX_VALUE))
  if (id.kind !== NULL) record.addFree(constants.named(constants.ID, constants.ID_VALUE))
  Mapper.map()
  return Mapper.take()
}
