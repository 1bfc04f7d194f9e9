import { namesOf, needlesOf, parseQuery, QUOTED_TEXT } from '@sluice/query-language'

/** The values of a field in SQL. */
export interface FieldSql {
  /** As it is in the request. */
  readonly name: string
  /** A value as it is stored, '' if an entry does not have the field. Equal values are equal, and others may become equal as `text`. */
  readonly stored: string
  /** A value as text. @param stored the expression of a value as it is stored */
  readonly text: (stored: string) => string
  readonly parameters: Readonly<Record<string, unknown>>
}

/** Columns that are no strings. */
const converted: Readonly<Record<string, string>> = {
  id: 'toString(id)',
  timestamp: "formatDateTime(timestamp, '%Y-%m-%dT%H:%i:%S.%fZ', 'UTC')",
  received_at: "formatDateTime(received_at, '%Y-%m-%dT%H:%i:%S.%fZ', 'UTC')",
}

/** A name that is in the JSON as it is written here: it has no escape. */
const PLAIN_NAME = /^[\w.@/-]+$/

const firstOf = (values: readonly string[]): string =>
  `arrayFirst(value -> value NOT IN ('', 'null'), [${values.join(', ')}])`

/**
 * The field that a query names so. A name that is no column is a path in the metadata. Null is no value.
 *
 * @returns undefined if it names no field
 */
export function fieldSql(name: string): FieldSql | undefined {
  const parsed = parseQuery(`${name}:*`)
  if (!('query' in parsed)) return undefined
  const { query } = parsed
  if (query.type !== 'term' || query.test.type !== 'exists' || query.end !== name.length + 2) return undefined
  const { field } = query
  if (field.type === 'column')
    return { name, stored: converted[field.name] ?? field.name, text: (stored) => stored, parameters: {} }
  const parameters: Record<string, unknown> = {}
  const bind = (text: string): string => {
    const parameter = `path${Object.keys(parameters).length}`
    parameters[parameter] = text
    return `{${parameter}:String}`
  }
  const paths = namesOf(field.path)
  const valuesIn = (json: string): string[] =>
    paths.map((names) => `JSONExtractRaw(${json}, ${names.map(bind).join(', ')})`)
  const [first = "''", ...others] = valuesIn('metadata_text')
  const any = firstOf([first, ...others])
  // Names with dots are rare, and to look for one is cheaper than to parse.
  const dotted = paths.slice(1).map((names) => names.at(-1) ?? '')
  const needles = dotted.map((each) => bind(`"${each}"`)).join(', ')
  const found = `if(multiSearchAny(metadata_text, [${needles}]), ${any}, ${first})`
  const read = others.length === 0 ? first : dotted.every((each) => PLAIN_NAME.test(each)) ? found : any
  const isNamed = needlesOf(field.path.slice(-1))?.map(bind).join(', ') ?? "''"
  return {
    name,
    // ClickHouse reads nothing of a text with a number beyond 64 bits.
    stored: `if((${read}) = '' AND multiSearchAny(metadata_text, [${isNamed}]) AND NOT isValidJSON(metadata_text), ${firstOf(valuesIn(QUOTED_TEXT))}, ${read})`,
    text: (json) =>
      `multiIf(${json} = 'null', '', startsWith(${json}, '"'), JSONExtractString(${json}), ${json})`,
    parameters,
  }
}
