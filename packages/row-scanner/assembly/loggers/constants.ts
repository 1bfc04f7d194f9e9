import { CONSTANT_TEXTS, CONSTANTS } from '../memory'
import { hashOf } from '../names'
import { ESCAPED } from '../strings'
import { NAME, Node, NODE_BYTES, TEXT } from '../tape'
import { environmentWord, levelWord, Word } from './words'

// Nodes that are always the same. The first are the levels and the environments of the contract.
const LEVELS: i32 = 6
const NAMES: i32 = CONSTANTS + 10 * NODE_BYTES
export const TIMESTAMP: i32 = NAMES
export const MESSAGE: i32 = NAMES + NODE_BYTES
export const LEVEL: i32 = NAMES + 2 * NODE_BYTES
export const ENV: i32 = NAMES + 3 * NODE_BYTES
export const SERVICE: i32 = NAMES + 4 * NODE_BYTES
export const ORIGINAL_LEVEL: i32 = NAMES + 5 * NODE_BYTES
export const INDEX: i32 = NAMES + 6 * NODE_BYTES
export const ID: i32 = NAMES + 7 * NODE_BYTES
export const SUCCESS: i32 = NAMES + 8 * NODE_BYTES
/** Values that are kept while the tape is used for others. */
export const INDEX_VALUE: i32 = NAMES + 9 * NODE_BYTES
export const ID_VALUE: i32 = NAMES + 10 * NODE_BYTES
export const PATH_INDEX: i32 = NAMES + 11 * NODE_BYTES

/** Makes the constants, after the words are indexed. */
export function makeConstants(levels: i32, environments: i32): void {
  for (let i = 0; i < levels; i += 1) makeWord(levelNode(i), levelWord(i))
  for (let i = 0; i < environments; i += 1) makeWord(environmentNode(i), environmentWord(i))
  let at = CONSTANT_TEXTS
  at = makeName(TIMESTAMP, 'timestamp', at)
  at = makeName(MESSAGE, 'message', at)
  at = makeName(LEVEL, 'level', at)
  at = makeName(ENV, 'env', at)
  at = makeName(SERVICE, 'service', at)
  at = makeName(ORIGINAL_LEVEL, 'originalLevel', at)
  at = makeName(INDEX, '_index', at)
  at = makeName(ID, '_id', at)
  makeName(SUCCESS, 'success', at)
  Node.of(SUCCESS).head = TEXT
}

export function levelNode(level: i32): i32 {
  return CONSTANTS + level * NODE_BYTES
}

export function environmentNode(environment: i32): i32 {
  return CONSTANTS + (LEVELS + environment) * NODE_BYTES
}

function makeWord(address: i32, word: Word): void {
  const node = Node.of(address)
  node.head = TEXT
  node.start = changetype<i32>(word)
  node.end = node.start + word.bytes
}

function makeName(address: i32, text: string, at: i32): i32 {
  const node = Node.of(address)
  node.start = at
  for (let i = 0; i < text.length; i += 1) store<u8>(at + i, <u8>text.charCodeAt(i))
  node.end = at + text.length
  // Only the name of a JSON text without escapes has quotes around it.
  node.head = NAME | ESCAPED | hashOf(node.start, node.end)
  return node.end
}

/** A constant name as the name of a value. */
export function named(name: i32, value: i32): i32 {
  const node = Node.of(name)
  // A mark of the last record.
  node.head &= ~USED
  node.next = value
  return name
}

/** A name whose value is a field. Names have no other use for the flag `CLEAN`. */
export const USED: i32 = 0x40

export function copyNode(to: i32, from: i32): void {
  v128.store(to, v128.load(from))
}
