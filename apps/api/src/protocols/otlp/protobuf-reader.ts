import { keepInexact } from '@sluice/rows'
import { isUtf8 } from 'node:buffer'

/** Bytes that no message of Protocol Buffers has. */
export class MalformedProtobuf extends Error {
  override name = 'MalformedProtobuf'
}

/** The types of encoded values. */
export const wireTypes = { varint: 0, fixed64: 1, bytes: 2, startGroup: 3, endGroup: 4, fixed32: 5 } as const

/** Official decoders have the same limit. */
const GROUP_DEPTH_MAX = 100
/** Passing this many takes less than a millisecond. No client sends groups: only unknown fields may be groups. */
const GROUP_FIELDS_MAX = 16_384
/** From this bit on, a varint would have more than ten bytes. */
const VARINT_BITS_MAX = 70

/**
 * The number of a field and the type of its value, as they are encoded. A known field with a value of another type is an unknown field,
 * as for official decoders.
 */
export function tagOf(field: number, wireType: keyof typeof wireTypes): number {
  return field * 8 + wireTypes[wireType]
}

/** Reads the fields of one message, in order. Each call of `next` must be followed by a call that reads or skips the value. */
export class ProtobufReader {
  readonly #bytes: Buffer
  readonly #end: number
  #at: number
  #tag = 0
  /** The last varint: 64 bits, unsigned. */
  #low = 0
  #high = 0

  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.#bytes = bytes
    this.#at = start
    this.#end = end
  }

  /** The place of the next byte. */
  get at(): number {
    return this.#at
  }

  /** Reads the tag of the next field. @returns -1 at the end of the message; compare others with `tagOf` */
  next(): number {
    if (this.#at === this.#end) return -1
    this.#readVarint()
    if (this.#high !== 0 || this.#low >>> 3 === 0) throw this.#malformed('a field has an invalid number')
    this.#tag = this.#low >>> 0
    return this.#tag
  }

  uint32(): number {
    this.#readVarint()
    return this.#low >>> 0
  }

  /** Also for an enum. */
  int32(): number {
    this.#readVarint()
    return this.#low | 0
  }

  bool(): boolean {
    this.#readVarint()
    return (this.#low | this.#high) !== 0
  }

  /** @returns a number, or a number with its source text if a double cannot represent it */
  int64(): unknown {
    this.#readVarint()
    const high = this.#high | 0
    // Doubles have 53 bits.
    if (high >= -0x20_0000 && high < 0x20_0000) return high * 0x1_0000_0000 + (this.#low >>> 0)
    return keepInexact(String((BigInt(high) << 32n) | BigInt(this.#low >>> 0)))
  }

  fixed32(): number {
    const start = this.#pass(4)
    return this.#bytes.readUInt32LE(start)
  }

  fixed64(): bigint {
    const start = this.#pass(8)
    return this.#bytes.readBigUInt64LE(start)
  }

  double(): number {
    const start = this.#pass(8)
    return this.#bytes.readDoubleLE(start)
  }

  bytes(): Buffer {
    const start = this.#pass(this.#length())
    return this.#bytes.subarray(start, this.#at)
  }

  /** Official decoders reject a message with text that is not UTF-8. */
  string(): string {
    return this.toText(this.bytes())
  }

  /** @param bytes what `bytes` returned */
  toText(bytes: Buffer): string {
    if (!isUtf8(bytes)) throw this.#malformed('a text is not UTF-8')
    return bytes.toString()
  }

  message(): ProtobufReader {
    const start = this.#pass(this.#length())
    return new ProtobufReader(this.#bytes, start, this.#at)
  }

  /** Passes the value of the current field. */
  skip(): void {
    const type = this.#tag & 7
    if (type === wireTypes.startGroup) this.#skipGroup()
    else this.#skipValue(type)
  }

  /** Without recursion: a group may contain groups. */
  #skipGroup(): void {
    const open = [this.#tag >>> 3]
    for (let fields = 0; open.length > 0; fields += 1) {
      if (fields > GROUP_FIELDS_MAX) throw this.#malformed('a group has too many fields')
      const tag = this.next()
      if (tag === -1) throw this.#malformed('a group has no end')
      const type = tag & 7
      if (type === wireTypes.startGroup) {
        if (open.length === GROUP_DEPTH_MAX) throw this.#malformed('groups are nested too deeply')
        open.push(tag >>> 3)
      } else if (type === wireTypes.endGroup) {
        if (open.pop() !== tag >>> 3) throw this.#malformed('a group ends within another one')
      } else this.#skipValue(type)
    }
  }

  #skipValue(type: number): void {
    if (type === wireTypes.varint) this.#readVarint()
    else if (type === wireTypes.fixed64) this.#pass(8)
    else if (type === wireTypes.bytes) this.#pass(this.#length())
    else if (type === wireTypes.fixed32) this.#pass(4)
    else throw this.#malformed('a field has an invalid type')
  }

  /** Passes bytes. @returns their start */
  #pass(bytes: number): number {
    const start = this.#at
    if (bytes > this.#end - start) throw this.#malformed('a value is longer than the message')
    this.#at += bytes
    return start
  }

  #length(): number {
    this.#readVarint()
    if (this.#high !== 0) throw this.#malformed('a value is longer than the message')
    return this.#low >>> 0
  }

  #readVarint(): void {
    // Most tags and lengths have one byte.
    const first = this.#at < this.#end ? (this.#bytes[this.#at] ?? 0) : 0x80
    if (first < 0x80) {
      this.#at += 1
      this.#low = first
      this.#high = 0
    } else this.#readLongVarint()
  }

  #readLongVarint(): void {
    let low = 0
    let high = 0
    let shift = 0
    for (let byte = 0x80; byte >= 0x80; shift += 7) {
      if (this.#at === this.#end) throw this.#malformed('a number is incomplete')
      if (shift === VARINT_BITS_MAX) throw this.#malformed('a number has more than ten bytes')
      byte = this.#bytes[this.#at] ?? 0
      this.#at += 1
      const bits = byte & 0x7f
      // Shifts of 32 bits and more count modulo 32. Bits above the 64th are dropped.
      if (shift < 32) low |= bits << shift
      if (shift === 28) high = bits >>> 4
      else if (shift > 32) high |= bits << (shift - 32)
    }
    this.#low = low
    this.#high = high
  }

  #malformed(what: string): MalformedProtobuf {
    return new MalformedProtobuf(`${what}, at byte ${this.#at}`)
  }
}
