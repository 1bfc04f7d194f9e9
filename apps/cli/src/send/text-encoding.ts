/** The first bytes of texts in UTF-16, as programs of Windows write them. UTF-8 has none of these bytes. */
const utf16Marks = [
  { encoding: 'utf-16le', mark: Buffer.from([0xff, 0xfe]) },
  { encoding: 'utf-16be', mark: Buffer.from([0xfe, 0xff]) },
] as const

/** @param start the first two bytes of a text @returns undefined for UTF-8 and everything else */
function detectUtf16(start: Buffer): (typeof utf16Marks)[number]['encoding'] | undefined {
  return utf16Marks.find(({ mark }) => start.subarray(0, mark.length).equals(mark))?.encoding
}

/** Yields a text in UTF-8. A text is in UTF-16 if it begins with a byte order mark of that. */
export async function* toUtf8(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let start: Buffer | undefined = Buffer.alloc(0)
  let decoder: TextDecoder | undefined
  for await (const piece of pieces) {
    if (start === undefined) {
      yield decoder === undefined ? piece : Buffer.from(decoder.decode(piece, { stream: true }))
      continue
    }
    const known: Buffer = Buffer.concat([start, piece])
    start = known
    // One byte of a mark: the next one decides. Text must not wait.
    if (known.length === 0 || (known.length === 1 && (known[0] ?? 0) >= 0xfe)) continue
    start = undefined
    const encoding = detectUtf16(known)
    decoder = encoding === undefined ? undefined : new TextDecoder(encoding)
    yield decoder === undefined ? known : Buffer.from(decoder.decode(known, { stream: true }))
  }
  if (decoder !== undefined) yield Buffer.from(decoder.decode())
  else if (start !== undefined && start.length > 0) yield start
}
