import { rowColumns } from '@sluice/rows'
import { entrySchema, limits } from '@sluice/schema'

/** The columns that come from the entry follow the id. */
const FIRST_COLUMN = rowColumns.indexOf('id') + 1
/** The scanner's number of the column of a field. */
export const columnOf = (field: string): number =>
  (rowColumns as readonly string[]).indexOf(field === 'metadata' ? 'metadata_text' : field) - FIRST_COLUMN

/** The names of the fields in the order of the schema. */
export const fieldNames: readonly string[] = Object.keys(entrySchema.properties)

/** The scanner's numbers of columns and fields, as in `assembly/columns.ts`. */
export const columns: Readonly<Record<string, number>> = {
  ...Object.fromEntries(fieldNames.map((name) => [name, columnOf(name)])),
  timestampField: fieldNames.indexOf('timestamp'),
  count: rowColumns.length,
}
if (columns['timestamp'] !== 0 || columns['metadata'] !== rowColumns.length - FIRST_COLUMN - 1) {
  throw new Error('the timestamp must be the first column after the id, and the metadata the last')
}

/** Sizes of `Pattern` and `Field` in `assembly/fields.ts`. */
const PATTERN_BYTES = 32
const FIELD_BYTES = 64
const TEXT_BYTES = 16
/** Bits of `Field.flags`. */
const REQUIRED = 1
const OBJECT = 2

/** Writes the table of fields for the scanner: the name, the column and the allowed values of each. */
export function writeFields(memory: Buffer, at: number): void {
  const fields = Object.entries(entrySchema.properties)
  let choicesAt = at + fields.length * FIELD_BYTES
  for (const [index, [name, property]] of fields.entries()) {
    const field = at + index * FIELD_BYTES
    writePattern(memory, field, name)
    const isMetadata = name === 'metadata'
    const choices = 'enum' in property ? property.enum.filter((choice) => choice !== null) : []
    const choicesEnd = choicesAt + choices.length * PATTERN_BYTES
    const column = columnOf(name)
    if (column < 0) throw new Error(`${name} has no column`)
    const charactersMax = 'maxLength' in property ? property.maxLength : limits.bodyBytesMax
    const next = index === fields.length - 1 ? 0 : field + FIELD_BYTES
    const isRequired = (entrySchema.required as readonly string[]).includes(name)
    const flags = (isRequired ? REQUIRED : 0) | (isMetadata ? OBJECT : 0)
    const numbers = [name.length, column, charactersMax, choicesAt, choicesEnd, next, index, flags]
    for (const [i, number] of numbers.entries()) memory.writeInt32LE(number, field + PATTERN_BYTES + i * 4)
    for (const choice of choices) {
      writePattern(memory, choicesAt, choice)
      choicesAt += PATTERN_BYTES
    }
  }
}

/** Writes a text with its closing quote, then a mask of its bytes. */
function writePattern(memory: Buffer, at: number, text: string): void {
  const bytes = Buffer.from(`${text}"`)
  if (bytes.length > TEXT_BYTES) throw new Error(`${text} is too long for the scanner`)
  memory.fill(0, at, at + PATTERN_BYTES).set(bytes, at)
  memory.fill(0xff, at + TEXT_BYTES, at + TEXT_BYTES + bytes.length)
}
