import { entrySchema } from '../entry.ts'
import { limits } from '../limits.ts'
import { rowColumns } from '../rows.ts'
import { QUOTE } from './bytes.ts'
import type { Cursor } from './cursor.ts'

/** A field of an entry, by the bytes of its name and its values. */
export interface Field {
  readonly name: Uint8Array
  /** The index of its column in `rowColumns`. */
  readonly column: number
  /** Texts of as many bytes are never too long. */
  readonly bytesMax: number
  /** The values that are allowed; undefined where all are. */
  readonly choices: readonly Uint8Array[] | undefined
}

export const TIMESTAMP = rowColumns.indexOf('timestamp')
export const LEVEL = rowColumns.indexOf('level')
export const MESSAGE = rowColumns.indexOf('message')
export const METADATA = rowColumns.indexOf('metadata_text')

const columns: readonly string[] = rowColumns
const fields: readonly Field[] = Object.entries(entrySchema.properties).map(([name, property]) => ({
  name: Buffer.from(name),
  column: name === 'metadata' ? METADATA : columns.indexOf(name),
  bytesMax: 'maxLength' in property ? property.maxLength : limits.bodyBytesMax,
  choices:
    'enum' in property
      ? property.enum.filter((choice) => choice !== null).map((choice) => Buffer.from(choice))
      : undefined,
}))

/** Finds fields by their names. A client sends them in one order, so that the guess is nearly always right. */
export class FieldGuesser {
  /** By column: the field that came after that of the column last time. */
  readonly #following: (Field | undefined)[] = columns.map(() => undefined)
  #column = 0

  /** Begins an entry. */
  start(): void {
    this.#column = 0
  }

  /** The field whose name begins at a place, after its quote; undefined for none. */
  next(cursor: Cursor, at: number): Field | undefined {
    let field = this.#following[this.#column]
    if (field === undefined || !isAt(field, cursor, at)) {
      field = fields.find((each) => isAt(each, cursor, at))
      this.#following[this.#column] = field
    }
    if (field !== undefined) this.#column = field.column
    return field
  }
}

function isAt({ name }: Field, cursor: Cursor, at: number): boolean {
  return cursor.memory[at + name.length] === QUOTE && cursor.has(name, at)
}
