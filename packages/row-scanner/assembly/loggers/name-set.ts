import { clearBytes } from '../bytes'
import { Literal, literals, literalsEnd } from '../literals'
import { LITERAL_BYTES } from '../memory'
import { Node, NODE_BYTES, REPEATED } from '../tape'

/** Up to sixteen names of ASCII that are looked for at once, and which of them an object has. */
@unmanaged
export class NameSet {
  private lengths!: v128
  /** The first of their literals. */
  private first!: i32

  /** The place of a name in the set; negative if it is another one. */
  placeOf(name: Node): i32 {
    if (name.bytes > i8.MAX_VALUE) return -1
    let bits = i8x16.bitmask(i8x16.eq(this.lengths, i8x16.splat(<i8>name.bytes)))
    for (; bits !== 0; bits &= bits - 1)
      if (Literal.of(this.first + ctz(bits) * LITERAL_BYTES).isAt(name.start)) return ctz(bits)
    return -1
  }

  /** Finds the names that an object has, or none of a value that is not an object. */
  find(object: i32): void {
    this.clear()
    for (let name = object + NODE_BYTES; Node.of(object).next > name; name = Node.afterMember(name))
      if (!Node.of(name).has(REPEATED)) this.note(name)
  }

  clear(): void {
    clearBytes(this.found, 16 * 4)
  }

  /** Keeps the node of a name if it is one of the set. */
  @inline
  note(name: i32): void {
    const place = this.placeOf(Node.of(name))
    if (place >= 0) store<i32>(this.found + (place << 2), name)
  }

  /** The node of a name; 0 if it was not found. */
  nameOf(place: i32): i32 {
    return load<i32>(this.found + (place << 2))
  }

  /** The node of its value; 0 if it was not found. */
  valueOf(place: i32): i32 {
    const name = this.nameOf(place)
    return name === 0 ? 0 : Node.of(name).next
  }

  /** Where the nodes are. */
  private get found(): i32 {
    return <i32>changetype<usize>(this) + 32
  }

  static make(at: usize, names: string): NameSet {
    const set = changetype<NameSet>(at)
    // No name has the length of the other places.
    set.lengths = i8x16.splat(-1)
    set.first = literals(names)
    for (let count = 0, name = set.first; name < literalsEnd; count += 1, name += LITERAL_BYTES)
      store<u8>(at + count, <u8>Literal.of(name).bytes)
    return set
  }
}
export const NAME_SET_BYTES: i32 = 32 + 16 * 4
