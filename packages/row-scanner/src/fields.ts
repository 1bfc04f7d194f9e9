import { rowColumns } from '@sluice/rows'
import { entrySchema, limits } from '@sluice/schema'

/** The columns that come from the entry follow the id. */
const FIRST_COLUMN = rowColumns.indexOf('id') + 1
/** The scanner's number of the column of a field. */
export const columnOf = (field: string): number =>
  (rowColumns as readonly string[]).indexOf(field === 'metadata' ? 'metadata_text' : field) - FIRST_COLUMN

/** The names of the fields in the order of the schema. */
export const fieldNames: readonly string[] = Object.keys(entrySchema.properties)

/** The scanner's numbers of columns, as in `assembly/columns.ts`. */
export const columns: Readonly<Record<string, number>> = {
  ...Object.fromEntries(fieldNames.map((name) => [name, columnOf(name)])),
  count: rowColumns.length,
}
if (columns['timestamp'] !== 0 || columns['metadata'] !== rowColumns.length - FIRST_COLUMN - 1) {
  throw new Error('the timestamp must be the first column after the id, and the metadata the last')
}

/** The values that the contract allows in each field that has only some. */
export const choices = Object.entries(entrySchema.properties).flatMap(([name, property]) =>
  ('enum' in property ? property.enum : []).map((value) => [value, name] as const),
)

/** Writes the table of fields for the scanner, as `Field` in `assembly/fields.ts`. */
export function writeFields(memory: Buffer, at: number): void {
  const numbers = Object.entries(entrySchema.properties).flatMap(([name, property]) => {
    const column = columnOf(name)
    if (column < 0) throw new Error(`${name} has no column`)
    const charactersMax = 'maxLength' in property ? property.maxLength : limits.bodyBytesMax
    const isRequired = (entrySchema.required as readonly string[]).includes(name)
    const flags = [isRequired, name === 'metadata', 'enum' in property]
    return [column, charactersMax, flags.reduce((bits, flag, i) => bits | (Number(flag) << (8 * i)), 0)]
  })
  for (const [i, number] of numbers.entries()) memory.writeInt32LE(number, at + 4 * i)
}
