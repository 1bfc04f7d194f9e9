import { SLASH, ZERO } from './bytes'
import { Errors } from './errors'
import { writeInteger } from './integers'
import { PATHS } from './memory'
import { LONE } from './strings'
import { Node, NODE_BYTES, OBJECT, REPEATED, STRING } from './tape'

/** A longer path ends at an object around the value. */
const PATH_BYTES_MAX: i32 = 512
const TILDE: u8 = 0x7e
const ONE: u8 = 0x31

/** The JSON Pointer of a string or a name with half of a surrogate pair, which has no UTF-8 form. */
export class Path {
  static start: i32 = PATHS
  static end: i32 = PATHS

  static begin(): void {
    Path.start = Errors.pathsEnd
    Path.end = Path.start
  }

  /** @returns false if the path would be too long; it is as before then */
  static add(name: Node): bool {
    if (Path.end - Path.start + 2 * name.bytes > PATH_BYTES_MAX) return false
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
    return true
  }

  static addMetadata(): void {
    const path = '/metadata'
    for (let i = 0; i < path.length; i += 1) store<u8>(Path.end + i, <u8>path.charCodeAt(i))
    Path.end += path.length
  }

  private static addIndex(index: i32): void {
    store<u8>(Path.end, SLASH)
    Path.end = writeInteger(Path.end + 1, index)
  }

  /** Finds a lone surrogate in a value, and adds the rest of its path. */
  static find(address: i32): bool {
    const node = Node.of(address)
    if (!node.has(LONE)) return false
    const kind = node.kind
    if (kind === STRING) return true
    return kind === OBJECT ? Path.findInObject(address) : Path.findInArray(address)
  }

  /** @param without the flags of names that are not stored */
  static findInObject(object: i32, without: i32 = REPEATED): bool {
    const end = Node.of(object).next
    for (let address = object + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next)
      if (!Node.of(address).has(without) && Path.findInMember(address)) return true
    return false
  }

  static findInMember(address: i32): bool {
    const name = Node.of(address)
    if (name.has(LONE)) return true
    const before = Path.end
    const isAdded = Path.add(name)
    if (Path.find(name.next)) {
      if (!isAdded) Path.end = before
      return true
    }
    Path.end = before
    return false
  }

  private static findInArray(array: i32): bool {
    let index = 0
    const end = Node.of(array).next
    for (let address = array + NODE_BYTES; address < end; address = Node.of(address).next) {
      const before = Path.end
      if (Path.end - Path.start < PATH_BYTES_MAX) Path.addIndex(index)
      if (Path.find(address)) return true
      Path.end = before
      index += 1
    }
    return false
  }
}
