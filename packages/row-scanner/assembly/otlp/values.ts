// The values of a record, a resource or a scope are nodes, like those of JSON. A value is first null. An array or an object can get more
// elements as long as nothing was added after it, because official decoders of Protocol Buffers merge repeated messages.
import * as codes from '../codes'
import { METADATA } from '../errors'
import { metadataBytesMax } from '../limits'
import { Literal, literal } from '../literals'
import { hasRepeated } from '../names'
import { LONE } from '../strings'
import {
  ARRAY,
  FALSE,
  LEVELS_MASK,
  LEVELS_SHIFT,
  Node,
  NODE_BYTES,
  NULL,
  OBJECT,
  REPEATED,
  Tape,
  TRUE,
} from '../tape'

/** Levels of metadata: `attributes` and `resource` are on level 2, the attributes of `scope` on level 3. A body is a member of metadata. */
export const BODY_LEVEL: i32 = 1
export const ATTRIBUTES_LEVEL: i32 = 2
export const SCOPE_ATTRIBUTES_LEVEL: i32 = 3

/** Why a record is rejected, or all records of a resource or a scope. */
export class Rejection {
  /** Negative if there is none. */
  static code: i32 = -1
  static where: i32 = 0

  /** @returns false */
  static set(code: i32, where: i32): bool {
    Rejection.code = code
    Rejection.where = where
    return false
  }
}

/**
 * Bounds the values of a record, a resource or a scope by the least bytes that they take as JSON, repeated names included: a value may take only
 * two bytes of a body, and its node has sixteen.
 */
export class Budget {
  private static left: i32 = 0

  static begin(): void {
    // The addition is for the names of attributes that become columns, and for a body.
    Budget.left = metadataBytesMax + 256
  }

  /** Takes an element of an array: at least one character and a separator. */
  static takeElement(): bool {
    return Budget.take(2)
  }

  /** Takes a member of an object: in addition two quotes and a colon. */
  static takeMember(name: Node): bool {
    return Budget.take(5 + name.bytes)
  }

  private static take(bytes: i32): bool {
    Budget.left -= bytes
    return Budget.left >= 0 || Rejection.set(codes.TOO_LARGE, METADATA)
  }
}

const WORD_NULL: i32 = literal('null')
const WORD_TRUE: i32 = literal('true')
const WORD_FALSE: i32 = literal('false')

/** Adds a value. @returns its address */
export function addNull(): i32 {
  const address = Tape.end
  Tape.add(NULL, Literal.of(WORD_NULL).start, Literal.of(WORD_NULL).end)
  return address
}

export function setNull(address: i32): void {
  setRange(address, NULL, Literal.of(WORD_NULL).start, Literal.of(WORD_NULL).end)
}

export function setBoolean(address: i32, value: bool): void {
  const word = Literal.of(value ? WORD_TRUE : WORD_FALSE)
  setRange(address, value ? TRUE : FALSE, word.start, word.end)
}

export function setRange(address: i32, head: i32, start: i32, end: i32): void {
  const node = Node.of(address)
  node.head = head
  node.start = start
  node.end = end
}

/** Makes the last value of the tape an array or an object, unless it is one. The start of its node is the number of its elements or names. */
export function open(address: i32, kind: i32): void {
  if (Node.of(address).kind === kind) return
  Tape.end = address
  Tape.add(kind | (1 << LEVELS_SHIFT), 0, 0)
}

/** Takes the last value of the tape into the array or the object before it. */
export function extend(container: i32, address: i32): void {
  const node = Node.of(container)
  const value = Node.of(address)
  value.next = Tape.end
  node.next = Tape.end
  node.start += 1
  node.head |= value.head & LONE
  raiseLevels(node, 1 + value.levels)
}

function raiseLevels(node: Node, levels: i32): void {
  if (levels > node.levels) node.head = (node.head & ~LEVELS_MASK) | (levels << LEVELS_SHIFT)
}

/** Resolves repeated names in a value that gets no more elements. */
export function close(address: i32): void {
  const node = Node.of(address)
  if (node.kind !== OBJECT || node.start < 2 || !hasRepeated(address, node.start)) return
  node.head = (node.head & ~LEVELS_MASK) | (1 << LEVELS_SHIFT)
  const end = node.next
  for (let name = address + NODE_BYTES; name < end; name = Node.of(name + NODE_BYTES).next)
    if (!Node.of(name).has(REPEATED)) raiseLevels(node, 1 + Node.of(Node.of(name).next).levels)
}

export function isList(address: i32): bool {
  const kind = Node.of(address).kind
  return kind === OBJECT || kind === ARRAY
}
