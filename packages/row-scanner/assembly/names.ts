import { copy, isEqual, QUOTE } from './bytes'
import { writeInteger } from './integers'
import { NAMES, TABLE, TABLE_SLOTS } from './memory'
import { decode, ESCAPED, LONE } from './strings'
import { HASH_MASK, NAME, Node, NODE_BYTES, REPEATED, Tape } from './tape'

/** Names and values with escapes, decoded. A quote follows each. */
export class Names {
  private static next: i32 = NAMES
  static end: i32 = NAMES

  static clear(): void {
    Names.next = NAMES
  }

  /** The place of the next one, for `rewind`. */
  static get mark(): i32 {
    return Names.next
  }

  /** Forgets what was written after a mark. */
  static rewind(mark: i32): void {
    Names.next = mark
  }

  /** Keeps what was written at the mark, up to an end. */
  static keep(end: i32): void {
    Names.end = end
    store<u8>(end, QUOTE)
    Names.next = end + 1
  }

  /** @returns the start of the decoded string; `Names.end` is its end */
  static decode(from: i32, end: i32): i32 {
    const start = Names.next
    Names.keep(decode(from, end, start))
    return start
  }
}

/** Drawn by JavaScript: without it, a client could choose many names with the same hash. */
let seed: u64 = 0

export function setSeed(value: u64): void {
  seed = value
}

/** The factor is odd, and half of its bits are set. */
const HASH_FACTOR: u64 = 0x9e3779b97f4a7c15

export function hashOf(from: i32, end: i32): i32 {
  let hash = seed ^ <u64>(end - from)
  let at = from
  for (; at + 8 <= end; at += 8) hash = rotl(hash ^ load<u64>(at), 29) * HASH_FACTOR
  const left = end - at
  if (left > 0) hash = rotl(hash ^ (load<u64>(at) & (<u64>-1 >> (64 - (left << 3)))), 31) * HASH_FACTOR
  return <i32>(hash >> 32) & HASH_MASK
}

/** Up to this number of names, each is compared with all earlier ones. */
const FEW_NAMES: i32 = 8

/**
 * Finds members with the same name. As for JSON.parse, the first one keeps its place and gets the value of the last one. The others are marked
 * as repeated.
 *
 * @param object the address of an object whose members are on the tape, up to its end
 * @returns whether there are any
 */
export function hasRepeated(object: i32, count: i32): bool {
  return count <= FEW_NAMES ? compareAll(object, count) : compareByTable(object, count)
}

function compareAll(object: i32, count: i32): bool {
  let found = false
  let address = object + NODE_BYTES
  for (let i = 1; i < count; i += 1) {
    address = Node.of(address + NODE_BYTES).next
    const name = Node.of(address)
    let other = object + NODE_BYTES
    for (let j = 0; j < i; j += 1) {
      if (isSame(Node.of(other), name)) {
        if (!Node.of(other).has(REPEATED)) {
          merge(Node.of(other), name)
          found = true
        }
      }
      other = Node.of(other + NODE_BYTES).next
    }
  }
  return found
}

export function isSame(a: Node, b: Node): bool {
  return ((a.head ^ b.head) & HASH_MASK) === 0 && a.bytes === b.bytes && isEqual(a.start, b.start, a.bytes)
}

function merge(first: Node, repeated: Node): void {
  first.next = repeated.next
  repeated.head |= REPEATED
}

@unmanaged
class Slot {
  generation!: i32
  /** The address of a name. */
  name!: i32
}
const SLOT_BYTES: i32 = 8
/** Slots of other generations are empty. */
let generation: i32 = 0
let mask: i32 = 0

function clearTable(count: i32): void {
  generation += 1
  let bits = 4
  while (1 << bits < count * 2 && 1 << bits < TABLE_SLOTS) bits += 1
  mask = (1 << bits) - 1
}

/** Finds the slot of a name, or the empty one for it, by open addressing. */
function slotOf(name: Node): Slot {
  let index = (name.head >>> 8) & mask
  while (true) {
    const slot = changetype<Slot>(TABLE + index * SLOT_BYTES)
    if (slot.generation !== generation || isSame(Node.of(slot.name), name)) return slot
    index = (index + 1) & mask
  }
}

function compareByTable(object: i32, count: i32): bool {
  clearTable(count)
  let found = false
  let address = object + NODE_BYTES
  for (let i = 0; i < count; i += 1) {
    const name = Node.of(address)
    const slot = slotOf(name)
    if (slot.generation === generation) {
      merge(Node.of(slot.name), name)
      found = true
    } else {
      slot.generation = generation
      slot.name = address
    }
    address = Node.of(address + NODE_BYTES).next
  }
  return found
}

/** The number of different names of an object. */
export function countNames(object: i32): i32 {
  let count = 0
  const end = Node.of(object).next
  for (let address = object + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next)
    if (!Node.of(address).has(REPEATED)) count += 1
  return count
}

/** The names of one object. */
export class NamesOf {
  static index(object: i32, count: i32): void {
    clearTable(count)
    const end = Node.of(object).next
    for (let address = object + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
      const name = Node.of(address)
      if (name.has(REPEATED)) continue
      const slot = slotOf(name)
      slot.generation = generation
      slot.name = address
    }
  }

  static has(name: Node): bool {
    return slotOf(name).generation === generation
  }
}

/** Names to which further ones are added, one by one. */
export class Taken {
  /** @param count of all names */
  static begin(count: i32): void {
    clearTable(count)
  }

  /** The node of the same name; 0 if it was not taken. */
  static find(name: Node): i32 {
    const slot = slotOf(name)
    return slot.generation === generation ? slot.name : 0
  }

  /** Takes a name. @param address its node @returns false if it was taken before */
  static take(address: i32): bool {
    const slot = slotOf(Node.of(address))
    if (slot.generation === generation) return false
    slot.generation = generation
    slot.name = address
    return true
  }
}

/** Adds the name `name_2` for `name` to the tape. @returns its node */
export function addNumbered(name: Node, number: i32): i32 {
  const address = Tape.end
  const start = Names.mark
  let end = copy(start, name.start, name.bytes)
  store<u8>(end, 0x5f)
  end = writeInteger(end + 1, number)
  Names.keep(end)
  Tape.add(NAME | ESCAPED | (name.head & LONE) | hashOf(start, end), start, end)
  return address
}
