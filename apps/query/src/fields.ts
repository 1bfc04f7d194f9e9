import { namesOf, parseQuery } from '@sluice/query-language'

/** An expression for the value of a field as text, '' if an entry does not have it. */
export interface FieldSql {
  readonly sql: string
  readonly parameters: Readonly<Record<string, unknown>>
}

/** Columns that are strings. The others are converted. */
const converted: Readonly<Record<string, string>> = {
  id: 'toString(id)',
  timestamp: "formatDateTime(timestamp, '%Y-%m-%dT%H:%i:%S.%fZ', 'UTC')",
  received_at: "formatDateTime(received_at, '%Y-%m-%dT%H:%i:%S.%fZ', 'UTC')",
}

/**
 * The field that a query names by this text. A name that is no column is a path in the metadata. Null is no value.
 *
 * @returns undefined if the text names no field
 */
export function fieldSql(text: string): FieldSql | undefined {
  const parsed = parseQuery(`${text}:*`)
  if (!('query' in parsed)) return undefined
  const { query } = parsed
  if (query.type !== 'term' || query.test.type !== 'exists' || query.end !== text.length + 2) return undefined
  const { field } = query
  if (field.type === 'column')
    return { sql: `toString(${converted[field.name] ?? field.name})`, parameters: {} }
  const parameters: Record<string, unknown> = {}
  const values = namesOf(field.path).map((names, path) => {
    const placeholders = names.map((name, index) => {
      parameters[`path${path}n${index}`] = name
      return `{path${path}n${index}:String}`
    })
    const place = ['metadata_text', ...placeholders].join(', ')
    return `if(JSONType(${place}) = 'String', JSONExtractString(${place}), JSONExtractRaw(${place}))`
  })
  const present = `arrayFirst(value -> value NOT IN ('', 'null'), [${values.join(', ')}])`
  return { sql: present, parameters }
}
