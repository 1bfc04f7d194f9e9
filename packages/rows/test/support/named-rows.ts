import { rowsOfFrame } from '../../src/row-frame.ts'
import { encodeBlock } from './encode-block.ts'

/** A block of rows of which a test needs only the names. All columns but the first one are missing. */
export function namedRows(...names: readonly string[]): Buffer {
  return encodeBlock(names.map((name) => `${name}\n`))
}

/** The names of the rows in a frame of such blocks. */
export function namesIn(frame: Buffer): string[] {
  const rows = rowsOfFrame(frame)
  if (rows === undefined) throw new Error('the frame cannot be read')
  return rows.map((row) => row.slice(0, row.indexOf('\t')))
}
