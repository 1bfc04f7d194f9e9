import { Literal } from '../literals'
import { addNumbered, hashOf, isSame, Names, Taken } from '../names'
import { NAME, Node, NODE_BYTES, REPEATED, Tape } from '../tape'

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

/** Makes a name of a value. @param name a literal */
export function named(name: i32, value: i32): i32 {
  const node = Tape.end
  const start = Literal.of(name).start
  const end = Literal.of(name).end
  Tape.add(NAME | hashOf(start, end), start, end)
  Node.of(node).next = value
  return node
}

/** Up to this number of names, a new one is compared with each. */
const FEW_NAMES: i32 = 16

/** The names of members, which may be of several objects. Each has its value as `next`. */
@unmanaged
export class Members {
  first!: i32
  /** The place after the last name. Each is an i32. */
  last!: i32
  /** How many members it may get: only then are names found by the table. */
  private room!: i32
  private isIndexed!: bool

  clear(start: i32, room: i32): void {
    this.first = start
    this.last = start
    this.room = room
    this.isIndexed = false
  }

  get count(): i32 {
    return (this.last - this.first) >> 2
  }

  /** Adds all members of an object. */
  addAll(object: i32): void {
    const known = this.last
    const end = Node.of(object).next
    for (let address = object + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next)
      if (!Node.of(address).has(REPEATED)) this.add(address, known)
  }

  /**
   * Adds a member and replaces none: if the name is taken, a number after it makes it a new one.
   *
   * @param known it is only compared with the names before this place: those after it are known to be others
   */
  @inline
  add(name: i32, known: i32): void {
    const added = known === this.first ? name : this.freeName(name, known)
    store<i32>(this.last, added)
    this.last += 4
  }

  private freeName(name: i32, known: i32): i32 {
    if (!this.isIndexed && known - this.first > FEW_NAMES * 4) this.index()
    const isFree = this.isIndexed ? Taken.take(name) : !this.has(Node.of(name), known)
    return isFree ? name : this.numbered(Node.of(name))
  }

  /** The value of a name of ASCII; 0 if there is none. */
  valueOf(name: string): i32 {
    const end = this.last
    for (let at = this.first; at < end; at += 4)
      if (isNamed(Node.of(load<i32>(at)), name)) return Node.of(load<i32>(at)).next
    return 0
  }

  private has(name: Node, known: i32): bool {
    for (let at = this.first; at < known; at += 4) if (isSame(Node.of(load<i32>(at)), name)) return true
    return false
  }

  private index(): void {
    Taken.begin(this.room)
    const end = this.last
    for (let at = this.first; at < end; at += 4) Taken.take(load<i32>(at))
    this.isIndexed = true
  }

  private numbered(name: Node): i32 {
    if (!this.isIndexed) this.index()
    const node = Tape.end
    const text = Names.mark
    let number = 2
    while (!Taken.take(addNumbered(name, number))) {
      Tape.end = node
      Names.rewind(text)
      number += 1
    }
    Node.of(node).next = name.next
    return node
  }
}
