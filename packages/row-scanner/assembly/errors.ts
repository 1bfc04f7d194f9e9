import * as codes from './codes'
import { ERRORS, ERRORS_MAX } from './memory'
import { Text } from './text'

/** Where an error is, if not at a field. */
export const ENTRY: i32 = -1
/** At the path that the error has. */
export const PATH: i32 = -2

@unmanaged
class EntryError {
  /** The place of the entry among the entries of the body. */
  index!: i32
  code!: i32
  /** The place of a field in the schema, one of the negative numbers above, or less the place of a field in `messages.ts`. */
  where!: i32
  /** What JavaScript does not word by the code and the place. Of a text that is not JSON: what must follow at its fault. */
  text!: i32
  /** Of a path, or of a text that is not JSON, and its fault. */
  start!: i32
  end!: i32
  at!: i32
}
const ERROR_BYTES: i32 = 28

/** The errors of the entries of a body. */
export class Errors {
  static count: i32 = 0

  static add(index: i32, code: i32, where: i32, text: string = ''): EntryError {
    const error = changetype<EntryError>(ERRORS + min(Errors.count, ERRORS_MAX - 1) * ERROR_BYTES)
    Errors.count = min(Errors.count + 1, ERRORS_MAX)
    error.index = index
    error.code = code
    error.where = where
    error.text = changetype<i32>(text)
    error.start = 0
    error.end = 0
    error.at = 0
    return error
  }

  /** Adds why the text that was read last is not JSON. */
  static addFault(index: i32): void {
    const error = Errors.add(index, codes.INVALID_JSON, ENTRY, Text.expected)
    error.start = Text.start
    error.end = Text.end
    error.at = Text.faultAt
  }
}
