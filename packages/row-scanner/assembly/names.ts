import { copy, firstOf, isEqual, QUOTE } from './bytes'
import { writeInteger } from './integers'
import { NAMES, SLOT_BYTES, TABLE, TABLE_SLOTS } from './memory'
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
  for (; at + 16 <= end; at += 16) hash = mix(mix(hash, load<u64>(at)), load<u64>(at, 8))
  // Names are short, and of any length: their last bytes are taken without a branch.
  const last = v128.and(v128.load(at), firstOf(end - at))
  hash = mix(mix(hash, i64x2.extract_lane(last, 0)), i64x2.extract_lane(last, 1))
  return <i32>(hash >> 32) & HASH_MASK
}

function mix(hash: u64, bytes: u64): u64 {
  return rotl(hash ^ bytes, 29) * HASH_FACTOR
}

export function isSame(a: Node, b: Node): bool {
  return ((a.head ^ b.head) & HASH_MASK) === 0 && a.bytes === b.bytes && isEqual(a.start, b.start, a.bytes)
}

@unmanaged
class Slot {
  generation!: i32
  /** The address of a name. */
  name!: i32
  /** The last number that was tried for it. */
  number!: i32
}
/** Slots of other generations are empty. */
let generation: i32 = 0
let mask: i32 = 0

/** Names to which further ones are added, one by one. */
export class Taken {
  /** @param count of all names */
  static begin(count: i32): void {
    generation += 1
    let bits = 5
    while (1 << bits < count * 2 && 1 << bits < TABLE_SLOTS) bits += 1
    mask = (1 << bits) - 1
  }

  /** Takes the names of an object. */
  static beginWith(object: i32): void {
    Taken.begin(countNames(object))
    for (let at = object + NODE_BYTES; Node.of(object).next > at; at = Node.afterMember(at))
      if (!Node.of(at).has(REPEATED)) Taken.take(at)
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
    slot.number = 1
    return true
  }

  /** The next number for a name that is taken. None is tried twice: a body may have thousands of members with one name. */
  static nextNumber(name: Node): i32 {
    const slot = slotOf(name)
    slot.number += 1
    return slot.number
  }
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

/**
 * Finds members with the same name. As for JSON.parse, the first one keeps its place and gets the value of the last one. The others are marked
 * as repeated.
 *
 * @param object the address of an object whose members are on the tape
 * @returns whether there are any
 */
export function hasRepeated(object: i32): bool {
  if (!mayRepeat(object)) return false
  Taken.begin(countNames(object))
  const end = Node.of(object).next
  let found = false
  for (let at = object + NODE_BYTES; at < end; at = Node.afterMember(at)) {
    if (Taken.take(at)) continue
    const name = Node.of(at)
    Node.of(Taken.find(name)).next = name.next
    name.head |= REPEATED
    found = true
  }
  return found
}

/** Most objects have fewer names than these, and none that two bits of its hash do not tell from those before it. */
const FEW_NAMES: i32 = 16

function mayRepeat(object: i32): bool {
  const end = Node.of(object).next
  let count = 0
  let first: u64 = 0
  let second: u64 = 0
  for (let at = object + NODE_BYTES; at < end; at = Node.afterMember(at)) {
    const hash = <u64>(Node.of(at).head >>> 8)
    const a = (<u64>1) << (hash & 63)
    const b = (<u64>1) << ((hash >> 6) & 63)
    count += 1
    if (count > FEW_NAMES || ((first & a) !== 0 && (second & b) !== 0)) return true
    first |= a
    second |= b
  }
  return false
}

/** The number of different names of an object. */
export function countNames(object: i32): i32 {
  let count = 0
  for (let at = object + NODE_BYTES; Node.of(object).next > at; at = Node.afterMember(at))
    if (!Node.of(at).has(REPEATED)) count += 1
  return count
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
