import * as codes from './codes'
import { Cursor } from './cursor'
import { columnOf, lineOf } from './strings'
import { ERRORS, ERRORS_MAX, PATHS, PATHS_BYTES_MAX } from './memory'

/** Where an error is, if not at a field. */
export const ENTRY: i32 = -1
/** In the metadata, with the unknown fields if the entry has no field with metadata. */
export const METADATA: i32 = -2
/** At the path that was written last. */
export const PATH: i32 = -3
/** In the envelope of an event of Splunk: it has no event, or a blank one. */
export const NO_EVENT: i32 = -10
export const BLANK_EVENT: i32 = -11
/** In the action of a bulk request. */
export const ACTION: i32 = -12
/** In bytes that are not UTF-8. */
export const BYTES: i32 = -13
/** At a line of Loki, or at the labels of its stream. */
export const LINE: i32 = -5
export const LABELS: i32 = -6

@unmanaged
class EntryError {
  /** The place of the entry among the entries of the body. */
  index!: i32
  code!: i32
  /** The place of a field in the schema, one of the negative numbers above, or less the place of a field in `messages.ts`. */
  where!: i32
  pathStart!: i32
  pathEnd!: i32
  /** Of a text that is not JSON: what must follow, where its fault is, and where the text ends. */
  fault!: i32
  at!: i32
  line!: i32
  column!: i32
  end!: i32
}
const ERROR_BYTES: i32 = 40

/** Paths are written before it is known whether they are needed. No path is longer. */
const PATH_ROOM: i32 = 1_024

/** The errors of the entries of a body. */
export class Errors {
  static count: i32 = 0
  static pathsEnd: i32 = PATHS

  static clear(): void {
    Errors.count = 0
    Errors.pathsEnd = PATHS
  }

  static add(index: i32, code: i32, where: i32): EntryError {
    const error = changetype<EntryError>(ERRORS + min(Errors.count, ERRORS_MAX - 1) * ERROR_BYTES)
    Errors.count = min(Errors.count + 1, ERRORS_MAX)
    error.index = index
    error.code = code
    error.where = where
    error.pathStart = 0
    error.pathEnd = 0
    return error
  }

  /** Adds the fault of a text that is not JSON. */
  static addFault(index: i32, start: i32, end: i32): void {
    const error = Errors.add(index, codes.INVALID_JSON, ENTRY)
    error.fault = Cursor.fault
    error.at = Cursor.at
    error.line = lineOf(start, Cursor.at)
    error.column = columnOf(start, Cursor.at)
    error.end = end
  }

  /** Keeps a path that was written at `pathsEnd`, or leaves it out if there is no room for another one after it. */
  static addPath(error: EntryError, start: i32, end: i32): void {
    if (end + PATH_ROOM > PATHS + PATHS_BYTES_MAX) return
    Errors.pathsEnd = max(Errors.pathsEnd, end)
    error.pathStart = start
    error.pathEnd = end
  }
}
