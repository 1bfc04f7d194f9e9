import { ZERO } from '../bytes'
import { TEXTS } from '../memory'
import { hashOf, isSame, Taken } from '../names'
import { ESCAPED, LONE } from '../strings'
import { NAME, Node, NODE_BYTES, REPEATED, Tape } from '../tape'

/** Texts that are made for the current record. */
export class Texts {
  static end: i32 = TEXTS

  static clear(): void {
    Texts.end = TEXTS
  }
}

/** The value of a member of an object; 0 if it has none with this name of ASCII. */
export function memberOf(object: i32, name: string): i32 {
  const end = Node.of(object).next
  for (let address = object + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next)
    if (!Node.of(address).has(REPEATED) && isNamed(Node.of(address), name)) return Node.of(address).next
  return 0
}

export function isNamed(node: Node, name: string): bool {
  if (node.bytes !== name.length) return false
  const start = node.start
  for (let i = 0; i < name.length; i += 1) if (load<u8>(start + i) !== <u8>name.charCodeAt(i)) return false
  return true
}

/** Up to this number of names, a new one is compared with each. */
const FEW_NAMES: i32 = 16

/** The names of members, which may be of several objects. Each has its value as `next`. */
@unmanaged
export class Members {
  private start!: i32
  private end!: i32
  /** How many members it may get: only then are names found by the table. */
  private room!: i32
  private isIndexed!: i32

  clear(start: i32, room: i32): void {
    this.start = start
    this.end = start
    this.room = room
    this.isIndexed = 0
  }

  get first(): i32 {
    return this.start
  }

  /** The place after the last name. Each is an i32. */
  get last(): i32 {
    return this.end
  }

  get count(): i32 {
    return (this.end - this.start) >> 2
  }

  /** Adds a member whose name is new. */
  add(name: i32): void {
    store<i32>(this.end, name)
    this.end += 4
    if (this.isIndexed) Taken.take(name)
  }

  /** Adds all members of an object, whose names are new. */
  addAll(object: i32): void {
    const end = Node.of(object).next
    for (let address = object + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next)
      if (!Node.of(address).has(REPEATED)) this.add(address)
  }

  /** Adds a member and replaces none: if the name is taken, a number after it makes it a new one. */
  addFree(name: i32): void {
    if (!this.isIndexed && this.count > FEW_NAMES) this.index()
    if (this.isIndexed ? Taken.take(name) : !this.has(Node.of(name))) {
      store<i32>(this.end, name)
      this.end += 4
    } else this.addNumbered(Node.of(name))
  }

  /** The same for all members of an object. Their names are different, so they are compared only with those that were there before. */
  addAllFree(object: i32): void {
    if (!this.isIndexed && this.count > FEW_NAMES) this.index()
    const known = this.end
    const end = Node.of(object).next
    for (let address = object + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
      if (Node.of(address).has(REPEATED)) continue
      if (this.isIndexed ? Taken.take(address) : !this.hasBefore(known, Node.of(address))) {
        store<i32>(this.end, address)
        this.end += 4
      } else this.addNumbered(Node.of(address))
    }
  }

  /** The value of a name of ASCII; 0 if there is none. */
  valueOf(name: string): i32 {
    const end = this.end
    for (let at = this.start; at < end; at += 4)
      if (isNamed(Node.of(load<i32>(at)), name)) return Node.of(load<i32>(at)).next
    return 0
  }

  private has(name: Node): bool {
    return this.hasBefore(this.end, name)
  }

  private hasBefore(end: i32, name: Node): bool {
    for (let at = this.start; at < end; at += 4) if (isSame(Node.of(load<i32>(at)), name)) return true
    return false
  }

  private index(): void {
    Taken.begin(this.room)
    const end = this.end
    for (let at = this.start; at < end; at += 4) Taken.take(load<i32>(at))
    this.isIndexed = 1
  }

  private addNumbered(name: Node): void {
    if (!this.isIndexed) this.index()
    const node = Tape.end
    const start = Texts.end
    memory.copy(start, name.start, name.bytes)
    const at = start + name.bytes
    store<u8>(at, 0x5f)
    let number = 2
    let end = at
    do {
      end = writeNumber(at + 1, number)
      Tape.end = node
      Tape.add(NAME | ESCAPED | (name.head & LONE) | hashOf(start, end), start, end)
      number += 1
    } while (!Taken.take(node))
    Node.of(node).next = name.next
    Texts.end = end
    store<i32>(this.end, node)
    this.end += 4
  }
}

function writeNumber(to: i32, number: i32): i32 {
  let digits = 1
  for (let rest = number; rest >= 10; rest /= 10) digits += 1
  for (let i = digits - 1; i >= 0; i -= 1) {
    store<u8>(to + i, <u8>(ZERO + <u8>(number % 10)))
    number /= 10
  }
  return to + digits
}
