import { SLASH, ZERO } from './bytes'
import { writeInteger } from './integers'
import { PATH_BYTES, PATHS } from './memory'
import { LONE } from './strings'
import { Node, NODE_BYTES, OBJECT, REPEATED, STRING } from './tape'

/** A longer path ends at an object around the value. */
const PATH_BYTES_MAX: i32 = 512
const TILDE: u8 = 0x7e
const ONE: u8 = 0x31

/** The JSON Pointer of the first string or name with half of a surrogate pair, which has no UTF-8 form. */
export class Path {
  static start: i32 = PATHS
  static end: i32 = PATHS

  /** @param place of the entry among those of the body */
  static findIn(entry: i32, place: i32): bool {
    Path.start = PATHS + place * PATH_BYTES
    Path.end = Path.start
    return Path.find(entry)
  }

  /** Adds the rest of the path. Names that are not stored may also have half of a pair. */
  private static find(address: i32): bool {
    const node = Node.of(address)
    if (!node.has(LONE) || node.kind === STRING) return node.has(LONE)
    const isObject = node.kind === OBJECT
    const before = Path.end
    let index = 0
    for (let at = address + NODE_BYTES; at < node.next; at = Node.of(isObject ? at + NODE_BYTES : at).next) {
      const name = Node.of(at)
      if (isObject && name.has(REPEATED)) continue
      if (isObject && name.has(LONE)) return true
      const hasRoom = before - Path.start + (isObject ? 2 * name.bytes : 0) <= PATH_BYTES_MAX
      if (!isObject) Path.addIndex(index)
      else if (hasRoom) Path.addName(name)
      const isFound = Path.find(isObject ? name.next : at)
      if (!isFound || !hasRoom) Path.end = before
      if (isFound) return true
      index += 1
    }
    return false
  }

  private static addIndex(index: i32): void {
    store<u8>(Path.end, SLASH)
    Path.end = writeInteger(Path.end + 1, index)
  }

  private static addName(name: Node): void {
    let to = Path.end
    store<u8>(to, SLASH)
    to += 1
    for (let at = name.start; at < name.end; at += 1) {
      const byte = load<u8>(at)
      const isSpecial = byte === TILDE || byte === SLASH
      store<u8>(to, isSpecial ? TILDE : byte)
      to += 1
      if (!isSpecial) continue
      store<u8>(to, byte === TILDE ? ZERO : ONE)
      to += 1
    }
    Path.end = to
  }
}
