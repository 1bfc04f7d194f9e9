/** Parts begin at multiples of this. Each is in the memory for many groups of records, and has room for a record that begins near the end. */
const PART_STEP_BYTES = 64 * 1024
/** A tag of one byte, and a length below 2^35. */
const HEAD_BYTES_MAX = 6

/**
 * Where the part of a message begins that is written to the scanner's memory for the field at a place. It follows from the place and the
 * message alone: see `RowScanner.scanRecords`.
 *
 * @param bytesMax the length of a part
 */
export function partStart(message: Uint8Array, at: number, bytesMax: number): number {
  const start = at - (at % PART_STEP_BYTES)
  return fieldEnd(message, at) > start + bytesMax ? at : start
}

/** The end of a field with a tag of one byte and a length. Other fields are not read by the scanner: their tag ends them. */
function fieldEnd(message: Uint8Array, at: number): number {
  let bytes = 0
  for (let i = 1; i < HEAD_BYTES_MAX; i += 1) {
    const byte = message[at + i] ?? 0
    bytes += (byte & 0x7f) * 2 ** (7 * (i - 1))
    if (byte < 0x80) return at + 1 + i + bytes
  }
  return at + HEAD_BYTES_MAX
}
