import * as codes from '../codes'
import { Literal } from '../literals'
import { Metadata } from '../metadata'
import { addNumbered, hashOf, isSame, Names, Taken } from '../names'
import { NAME, Node, NODE_BYTES, REPEATED, Tape } from '../tape'

/** The value of a member of an object; 0 if it has none with this name. @param literal of the name */
export function memberOf(object: i32, literal: i32): i32 {
  const end = Node.of(object).next
  for (let name = object + NODE_BYTES; name < end; name = Node.of(name + NODE_BYTES).next)
    if (!Node.of(name).has(REPEATED) && Literal.of(literal).isName(Node.of(name))) return Node.of(name).next
  return 0
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
  /** How many members it may get: only then are names found by the table. Further ones go. */
  room!: i32
  isIndexed!: bool
  /** How many numbers may still be tried. A member that would need another one goes. */
  numbersLeft!: i32

  clear(start: i32, room: i32, numbersMax: i32 = i32.MAX_VALUE): void {
    this.first = start
    this.last = start
    this.room = room
    this.isIndexed = false
    this.numbersLeft = numbersMax
  }

  get count(): i32 {
    return (this.last - this.first) >> 2
  }

  /** Adds the members of an object, except those with some values. */
  addAll(object: i32, a: i32 = 0, b: i32 = 0, c: i32 = 0): void {
    const known = this.last
    const end = Node.of(object).next
    for (let name = object + NODE_BYTES; name < end; name = Node.of(name + NODE_BYTES).next) {
      const value = Node.of(name).next
      if (!Node.of(name).has(REPEATED) && value !== a && value !== b && value !== c) this.add(name, known)
    }
  }

  /**
   * Adds a member and replaces none: if the name is taken, a number after it makes it a new one.
   *
   * @param known it is only compared with the names before this place: those after it are known to be others
   */
  @inline
  add(name: i32, known: i32 = this.last): void {
    const isNew = known === this.first || this.same(name, known) === 0
    this.put(isNew ? name : this.numbered(Node.of(name)))
  }

  /** Adds a member after all others, without the table. */
  addLast(name: i32): void {
    this.put(this.same(name, this.last, i32.MAX_VALUE) === 0 ? name : this.numbered(Node.of(name)))
  }

  /** @param name 0 for that of a member that goes @returns whether it stays */
  put(name: i32): bool {
    if (name === 0 || this.count >= this.room) {
      Metadata.note(codes.TOO_MANY_NAMES)
      return false
    }
    store<i32>(this.last, name)
    this.last += 4
    return true
  }

  /** The same name before a place; 0 if there is none: it is then taken. */
  same(name: i32, known: i32, few: i32 = FEW_NAMES * 4): i32 {
    if (known - this.first > few) this.index()
    if (this.isIndexed) return Taken.take(name) ? 0 : Taken.find(Node.of(name))
    for (let at = this.first; at < known; at += 4)
      if (isSame(Node.of(load<i32>(at)), Node.of(name))) return load<i32>(at)
    return 0
  }

  /** Gives numbers to the second member with a name and to further ones. The others keep their names. */
  numberRepeated(): void {
    if (this.count < 2) return
    Taken.begin(this.room)
    this.isIndexed = true
    for (let at = this.first; at < this.last; at += 4)
      if (!Taken.take(load<i32>(at))) store<i32>(at, -load<i32>(at))
    const end = this.last
    this.last = this.first
    for (let at = this.first; at < end; at += 4)
      this.put(load<i32>(at) < 0 ? this.numbered(Node.of(-load<i32>(at))) : load<i32>(at))
    this.isIndexed = false
  }

  /** Finds names by the table from now on. */
  index(): void {
    if (this.isIndexed) return
    Taken.begin(this.room)
    const end = this.last
    for (let at = this.first; at < end; at += 4) Taken.take(load<i32>(at))
    this.isIndexed = true
  }

  /** Adds the name with the first number that makes it a new one to the tape. @returns 0 if no number may be tried any more */
  numbered(name: Node): i32 {
    this.index()
    const node = Tape.end
    const text = Names.mark
    while (this.numbersLeft > 0) {
      this.numbersLeft -= 1
      if (Taken.take(addNumbered(name, Taken.nextNumber(name)))) {
        Node.of(node).next = name.next
        return node
      }
      Tape.end = node
      Names.rewind(text)
    }
    return 0
  }
}
export const MEMBERS_BYTES: i32 = 20
