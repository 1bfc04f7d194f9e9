import * as codes from '../codes'
import { Literal } from '../literals'
import { Metadata } from '../metadata'
import { addNumbered, hashOf, isSame, Names, Taken } from '../names'
import { NAME, Node, NODE_BYTES, REPEATED, Tape } from '../tape'

/** The value of a member of an object; 0 if it has none with this name. @param literal of the name */
export function memberOf(object: i32, literal: i32): i32 {
  for (let name = object + NODE_BYTES; Node.of(object).next > name; name = Node.afterMember(name))
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

  /** The value of the first member with a name; 0 if there is none. @param literal of the name */
  valueOf(literal: i32): i32 {
    for (let at = this.first; at < this.last; at += 4)
      if (Literal.of(literal).isName(Node.of(load<i32>(at)))) return Node.of(load<i32>(at)).next
    return 0
  }

  /** Adds the members of an object, except those with some values. */
  addAll(object: i32, a: i32 = 0, b: i32 = 0, c: i32 = 0): void {
    const known = this.last
    for (let name = object + NODE_BYTES; Node.of(object).next > name; name = Node.afterMember(name)) {
      const value = Node.of(name).next
      if (!Node.of(name).has(REPEATED) && value !== a && value !== b && value !== c) this.add(name, known)
    }
  }

  /**
   * Adds a member and replaces none: if the name is taken, a number after it makes it a new one.
   *
   * @param known it is only compared with the names before this place: those after it are known to be others
   * @returns whether it stays
   */
  @inline
  add(name: i32, known: i32 = this.last): bool {
    const isNew = known === this.first || this.count >= this.room || this.same(name, known) === 0
    return isNew ? this.put(name) : this.putNumbered(name)
  }

  /** Adds a member that has a new name. @param name 0 for that of a member that goes */
  put(name: i32): bool {
    if (name === 0 || this.count >= this.room) {
      Metadata.note(codes.TOO_MANY_NAMES)
      return false
    }
    store<i32>(this.last, name)
    this.last += 4
    return true
  }

  /** Adds a member under its name with the first number that makes it a new one, unless no number may be tried any more. */
  putNumbered(name: i32): bool {
    this.index()
    const node = Tape.end
    const text = Names.mark
    while (this.numbersLeft > 0) {
      this.numbersLeft -= 1
      if (Taken.take(addNumbered(Node.of(name), Taken.nextNumber(Node.of(name))))) {
        Node.of(node).next = Node.of(name).next
        return this.put(node)
      }
      Tape.end = node
      Names.rewind(text)
    }
    return this.put(0)
  }

  /** The same name before a place; 0 if there is none: it is then taken. */
  same(name: i32, known: i32): i32 {
    if (known - this.first > FEW_NAMES * 4) this.index()
    if (this.isIndexed) return Taken.take(name) ? 0 : Taken.find(Node.of(name))
    for (let at = this.first; at < known; at += 4)
      if (isSame(Node.of(load<i32>(at)), Node.of(name))) return load<i32>(at)
    return 0
  }

  /** Finds names by the table from now on. */
  private index(): void {
    if (this.isIndexed) return
    Taken.begin(this.room)
    const end = this.last
    for (let at = this.first; at < end; at += 4) Taken.take(load<i32>(at))
    this.isIndexed = true
  }
}
export const MEMBERS_BYTES: i32 = 20
