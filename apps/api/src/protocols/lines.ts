/** Bytes of short lines or records that are read in one step. */
const STEP_BYTES = 64 * 1024
const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d

/** Where a line is in a body. */
export interface Line {
  readonly start: number
  /** The place after its last byte, without the end of the line. */
  readonly end: number
}

/**
 * The lines of a body that are not empty. They end with LF or CRLF, optional for the last one. Undefined ends a step in which only empty
 * lines were found.
 */
export function* linesOf(body: Buffer): Generator<Line | undefined> {
  let stepEnd = STEP_BYTES
  for (let start = 0; start < body.length;) {
    const byte = body[start]
    if (byte === NEWLINE || (byte === CARRIAGE_RETURN && body[start + 1] === NEWLINE)) {
      start += byte === NEWLINE ? 1 : 2
      if (start < stepEnd) continue
      stepEnd = start + STEP_BYTES
      yield undefined
      continue
    }
    const newline = body.indexOf(NEWLINE, start)
    const lineEnd = newline < 0 ? body.length : newline
    const end = body[lineEnd - 1] === CARRIAGE_RETURN ? lineEnd - 1 : lineEnd
    if (end > start) yield { start, end }
    start = lineEnd + 1
    stepEnd = start + STEP_BYTES
  }
}
