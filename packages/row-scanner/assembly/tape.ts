import { TAPE } from './memory'

/** The kinds of nodes: the lowest bits of their heads. */
export const NULL: i32 = 0
export const TRUE: i32 = 1
export const FALSE: i32 = 2
export const NUMBER: i32 = 3
export const STRING: i32 = 4
export const OBJECT: i32 = 5
export const ARRAY: i32 = 6
/** The name of a member. Its value follows. */
export const NAME: i32 = 7
/** A string that is not JSON: its bytes are as they are. */
export const TEXT: i32 = 8
/** Numbers that have no text yet, the second one an integer that becomes a string: see `scalars.ts`. */
export const INTEGER: i32 = 9
export const DIGITS: i32 = 10
export const DOUBLE: i32 = 11
export const KIND: i32 = 0x0f

/** Of objects and arrays: the bytes are as they are stored, without whitespace, escaped names and repeated ones. */
export const CLEAN: i32 = 0x40
/** Of a name: its value does not become metadata. */
export const USED: i32 = CLEAN
/** Of a name: another member of the object has the same name, and counts. Of an object or an array: a member in it is such, or has an escaped name. */
export const REPEATED: i32 = 0x80
/** The levels of an object or an array, its own included: the second byte of its head. */
export const LEVELS_SHIFT: i32 = 8
/** Of a name: its hash, the upper three bytes of its head. */
export const HASH_MASK: i32 = ~0xff

/**
 * A value of JSON, or the name of a member. The nodes of a text stand in its order, so a value without `next` is followed by the first node
 * after it.
 */
@unmanaged
export class Node {
  head!: i32
  /** The content: of a string without its quotes, of a name as decoded. */
  start!: i32
  end!: i32
  /** The node after the value and all that is in it. Of a name: the node of its value, which is the last of several. */
  next!: i32

  get kind(): i32 {
    return this.head & KIND
  }

  get bytes(): i32 {
    return this.end - this.start
  }

  /** 0 if it is neither an object nor an array. */
  get levels(): i32 {
    return this.isContainer ? (this.head >> LEVELS_SHIFT) & 0xff : 0
  }

  has(flag: i32): bool {
    return (this.head & flag) !== 0
  }

  get isString(): bool {
    return this.kind === STRING || this.kind === TEXT
  }

  get isContainer(): bool {
    return this.kind === OBJECT || this.kind === ARRAY
  }

  static of(address: i32): Node {
    return changetype<Node>(address)
  }

  /** The name after a member. */
  static afterMember(name: i32): i32 {
    return Node.of(name + NODE_BYTES).next
  }
}

export const NODE_BYTES: i32 = 16

export class Tape {
  static end: i32 = TAPE

  /** Adds a node. @returns its address */
  static add(head: i32, start: i32, end: i32): i32 {
    const address = Tape.end
    const node = Node.of(address)
    node.head = head
    node.start = start
    node.end = end
    Tape.end += NODE_BYTES
    node.next = Tape.end
    return address
  }
}
