/** A part of a frame that says what follows it. */
interface Part {
  readonly bytes: number
  /** @returns how many bytes of data follow, and the part after them. Undefined if this is no frame */
  readonly read: (part: Buffer) => { readonly skip: number; readonly next: Part } | undefined
}

const frame: Part = {
  bytes: 4,
  read: (part) => {
    const magic = part.readUInt32LE()
    if (magic === 0xfd_2f_b5_28) return { skip: 0, next: descriptor }
    // The last digit is free.
    return magic >>> 4 === 0x1_84_d2_a5 ? { skip: 0, next: skippable } : undefined
  },
}

/** The size of a frame that is not data: programs add indexes and sizes in this form. */
const skippable: Part = { bytes: 4, read: (part) => ({ skip: part.readUInt32LE(), next: frame }) }

const descriptor: Part = {
  bytes: 1,
  read: (part) => {
    const flags = part.readUInt8()
    const isSingleSegment = (flags & 0x20) !== 0
    const windowBytes = isSingleSegment ? 0 : 1
    const dictionaryBytes = [0, 1, 2, 4][flags & 3] ?? 0
    const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][flags >>> 6] ?? 0
    const checksumBytes = (flags & 4) === 0 ? 0 : 4
    return { skip: windowBytes + dictionaryBytes + sizeBytes, next: blockBefore(checksumBytes) }
  },
}

function blockBefore(checksumBytes: number): Part {
  const block: Part = {
    bytes: 3,
    read: (part) => {
      const header = part.readUIntLE(0, 3)
      const isRepeatedByte = ((header >>> 1) & 3) === 1
      const dataBytes = isRepeatedByte ? 1 : header >>> 3
      const isLast = (header & 1) === 1
      return isLast ? { skip: dataBytes + checksumBytes, next: frame } : { skip: dataBytes, next: block }
    },
  }
  return block
}

/**
 * Follows the frames of zstd data (RFC 8878), without decompressing them: Node ends at the first bytes that are no frame, as if the
 * data ended there.
 */
export class ZstdFrames {
  #part: Part | undefined = frame
  /** The bytes of the part that have come. */
  #read: Buffer = Buffer.alloc(0)
  #skip = 0

  /** @returns the bytes that belong to frames: fewer than were given if something else follows a frame */
  push(bytes: Buffer): Buffer {
    let at = 0
    while (at < bytes.length && this.#part !== undefined) {
      const skipped = Math.min(this.#skip, bytes.length - at)
      this.#skip -= skipped
      at += skipped
      const missing = this.#part.bytes - this.#read.length
      const found = bytes.subarray(at, at + (this.#skip > 0 ? 0 : missing))
      this.#read = Buffer.concat([this.#read, found])
      if (found.length === missing && !this.#readPart(this.#part)) break
      at += found.length
    }
    return bytes.subarray(0, at)
  }

  /** Whether the data ended with a frame. */
  get isComplete(): boolean {
    return this.#part === frame && this.#skip === 0 && this.#read.length === 0
  }

  #readPart({ read }: Part): boolean {
    const found = read(this.#read)
    this.#read = Buffer.alloc(0)
    this.#part = found?.next
    this.#skip = found?.skip ?? 0
    return found !== undefined
  }
}
