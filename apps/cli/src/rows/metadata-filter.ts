import { InvalidArgumentError } from 'commander'

export interface MetadataFilter {
  /** The names that lead to the value. Each alternative is one way to read the path. */
  readonly paths: readonly (readonly string[])[]
  readonly value: string
  readonly isString: boolean
}

export const metadataFilterLimits = {
  /** ClickHouse parses the metadata of every row for each filter, in about 2 µs. */
  filtersMax: 20,
  namesMax: 16,
  charactersMax: 4_096,
} as const

/** Characters that may be operators in a later version, and blanks, must be quoted. */
const NAME = /(?:"(?:[^"\\]|\\.)*"|[^\s.="!<>~]+)/u
const CONDITION = new RegExp(`^metadata((?:\\.${NAME.source})+)=(.*)$`, 'su')

/**
 * Parses `metadata.user.id=42`. A name with dots, blanks or operators is a JSON string: `metadata."http.status"=500`. Without quotes, dots
 * may separate nested names or be part of one name. @throws InvalidArgumentError
 */
export function parseMetadataFilter(
  condition: string,
  before: readonly MetadataFilter[] = [],
): MetadataFilter[] {
  const { filtersMax, namesMax, charactersMax } = metadataFilterLimits
  const [, path = '', value = ''] = CONDITION.exec(condition) ?? []
  const quoted = path.match(new RegExp(NAME.source, 'gu')) ?? []
  const names = quoted.map((name) => (name.startsWith('"') ? (jsonString(name) ?? '') : name))
  if (quoted.length === 0 || names.some((name, index) => name === '' && quoted[index] !== '""'))
    throw new InvalidArgumentError('It must be metadata.NAME=VALUE, such as metadata.user.id=42.')
  const most = `${filtersMax} conditions of ${namesMax} names and ${charactersMax.toLocaleString('en-US')} characters`
  if (condition.length > charactersMax || names.length > namesMax || before.length === filtersMax)
    throw new InvalidArgumentError(`There are at most ${most}.`)
  const mayBeOneName = names.length > 1 && !path.includes('"')
  const string = jsonString(value)
  const paths = [names, ...(mayBeOneName ? [[names.join('.')]] : [])]
  return [...before, { paths, value: string ?? value, isString: string !== undefined }]
}

function jsonString(json: string): string | undefined {
  if (!json.startsWith('"')) return undefined
  try {
    return JSON.parse(json) as string
  } catch {
    return undefined
  }
}

/**
 * The metadata in a form that ClickHouse can parse. It rejects numbers beyond 64 bits, with all the metadata around them:
 * they become strings, as in the column `metadata`. Otherwise one such number would hide an entry from all filters.
 */
const parseable = (metadata: string): string =>
  `if(isValidJSON(${metadata}), ${metadata}, replaceRegexpAll(${metadata},
    '([\\\\[:,]\\\\s*)(-?[0-9]{19,}[0-9.eE+-]*|-?[0-9.]+[eE][+]?[0-9]{3,})', '\\\\1"\\\\2"'))`

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

const SCALARS = "('String', 'Int64', 'UInt64', 'Double', 'Bool')"

/** An SQL condition. The names and the value are in parameters only, whose own names begin with `prefix`. */
export function metadataCondition(
  { paths, value, isString }: MetadataFilter,
  prefix: string,
  metadata = 'metadata_text',
) {
  const number = !isString && NUMBER.test(value) && Number.isFinite(Number(value)) ? Number(value) : undefined
  const params: Record<string, unknown> = { [`${prefix}value`]: value, [`${prefix}number`]: number }
  const alternatives = paths.flatMap((names, path) => {
    const parameters = names.map((name, index) => {
      const parameter = `${prefix}path${path}name${index}`
      params[parameter] = name
      return `{${parameter}:String}`
    })
    const access = [parseable(metadata), ...parameters].join(', ')
    const type = `JSONType(${access})`
    const equals = `JSONExtractString(${access}) = {${prefix}value:String}`
    const found = [`(${type} IN ${isString ? "('String')" : SCALARS} AND ${equals})`]
    if (number !== undefined) {
      // Finds 42.0 and 4.2e1 for 42. Large integers are compared as strings only: as floats they would equal their neighbours.
      const types =
        Math.abs(number) <= Number.MAX_SAFE_INTEGER ? "('Int64', 'UInt64', 'Double')" : "('Double')"
      found.push(`(${type} IN ${types} AND JSONExtractFloat(${access}) = {${prefix}number:Float64})`)
    }
    // JSONType cannot distinguish null from an absent value.
    if (value === 'null' && !isString) found.push(`(${type} = 'Null' AND JSONHas(${access}))`)
    return found
  })
  return { condition: `(${alternatives.join(' OR ')})`, params }
}
