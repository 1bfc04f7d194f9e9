import { copy } from '../bytes'
import { writeInteger } from '../integers'
import { hashOf, isSame, Names } from '../names'
import { ESCAPED, LONE } from '../strings'
import { NAME, Node, NODE_BYTES, Tape } from '../tape'

const UNDERSCORE: u8 = 0x5f
/** The first number of a repeated name. */
export const FIRST_NUMBER: i32 = 2

/** More than twice the names of a table. */
const SLOTS: i32 = 1_024
const SLOT_BYTES: i32 = 20
const HEAD_BYTES: i32 = 16
export const TABLE_BYTES: i32 = HEAD_BYTES + SLOTS * SLOT_BYTES

@unmanaged
export class Slot {
  /** Slots of other generations are empty. */
  generation!: i32
  /** The node of a name. */
  name!: i32
  /** The next number for the name. */
  number!: i32
  /** 0 if the name is only reserved: see `Stream`. */
  label!: i32
  /** The first number for the name that no label has; 0 if it is not known. */
  free!: i32
}

/** A hash table for a few hundred names, at a fixed address. */
@unmanaged
export class NameTable {
  private generation!: i32

  static at(address: i32): NameTable {
    return changetype<NameTable>(address)
  }

  clear(): void {
    this.generation += 1
  }

  /** The slot of a name, or the empty one for it. */
  slotOf(name: Node): Slot {
    let index = (name.head >>> 8) & (SLOTS - 1)
    while (true) {
      const slot = changetype<Slot>(changetype<i32>(this) + HEAD_BYTES + index * SLOT_BYTES)
      if (!this.isUsed(slot) || isSame(Node.of(slot.name), name)) return slot
      index = (index + 1) & (SLOTS - 1)
    }
  }

  isUsed(slot: Slot): bool {
    return slot.generation === this.generation
  }

  has(name: Node): bool {
    return this.isUsed(this.slotOf(name))
  }

  put(slot: Slot, name: i32): void {
    slot.generation = this.generation
    slot.name = name
    slot.number = FIRST_NUMBER
    slot.label = 0
    slot.free = 0
  }

  /** Adds a name. If it is taken, a number after it makes it a new one. @returns its slot */
  add(address: i32): Slot {
    const name = Node.of(address)
    let slot = this.slotOf(name)
    if (this.isUsed(slot)) {
      const base = slot
      while (true) {
        const numbered = Node.of(numberedName(name, base.number))
        base.number += 1
        slot = this.slotOf(numbered)
        if (!this.isUsed(slot)) {
          name.head = numbered.head
          name.start = numbered.start
          name.end = numbered.end
          break
        }
      }
      Names.keep(name.end)
    }
    this.put(slot, address)
    return slot
  }
}

/**
 * Writes `name_2` for `name`, at the end of the names and of the nodes. Neither is kept.
 *
 * @returns the node
 */
export function numberedName(name: Node, number: i32): i32 {
  const start = Names.mark
  let end = copy(start, name.start, name.bytes)
  store<u8>(end, UNDERSCORE)
  end = writeInteger(end + 1, number)
  const node = Node.of(Tape.end)
  node.head = NAME | ESCAPED | (name.head & LONE) | hashOf(start, end)
  node.start = start
  node.end = end
  return Tape.end
}

/** Keeps the name that was written last. @param value the node of its value */
export function keepNumbered(value: i32): void {
  const name = Node.of(Tape.end)
  name.next = value
  Names.keep(name.end)
  Tape.end += NODE_BYTES
}
