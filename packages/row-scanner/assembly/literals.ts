import { COLON, isEqual, QUOTE } from './bytes'
import { LITERAL_BYTES, LITERALS, LITERALS_MAX } from './memory'
import { Node } from './tape'

/** A name of ASCII, as it is written in JSON, and as it is compared with. */
@unmanaged
export class Literal {
  /** The length of the name. */
  bytes!: i32

  static of(address: i32): Literal {
    return changetype<Literal>(address)
  }

  get start(): i32 {
    return <i32>changetype<usize>(this) + NAME_OFFSET
  }

  get end(): i32 {
    return this.start + this.bytes
  }

  /** Whether a name is this one. */
  @inline
  isName(name: Node): bool {
    return name.bytes === this.bytes && this.isAt(name.start)
  }

  /** Whether a text is this one. */
  isText(start: i32, end: i32): bool {
    return end - start === this.bytes && this.isAt(start)
  }

  /** Whether the bytes of the literal are at an address. */
  isAt(at: i32): bool {
    return isEqual(at, this.start, this.bytes)
  }
}

/** After the length and a quote. */
const NAME_OFFSET: i32 = 5
export let literalsEnd: i32 = LITERALS

/** Writes a literal to the memory. For constants of modules: they are made when the module starts. @returns its address */
export function literal(name: string, from: i32 = 0, end: i32 = name.length): i32 {
  if (literalsEnd === LITERALS + LITERALS_MAX * LITERAL_BYTES) unreachable()
  const made = Literal.of(literalsEnd)
  made.bytes = end - from
  const start = made.start
  store<u8>(start - 1, QUOTE)
  for (let i = from; i < end; i += 1) store<u8>(start + i - from, <u8>name.charCodeAt(i))
  store<u8>(made.end, QUOTE)
  store<u8>(made.end + 1, COLON)
  literalsEnd += LITERAL_BYTES
  return <i32>changetype<usize>(made)
}

/** Writes literals that spaces separate, one after another. @returns the address of the first */
export function literals(names: string): i32 {
  const first = literalsEnd
  for (let start = 0, end = 0; end < names.length; start = end + 1) {
    end = start
    while (end < names.length && names.charCodeAt(end) !== 0x20) end += 1
    literal(names, start, end)
  }
  return first
}
