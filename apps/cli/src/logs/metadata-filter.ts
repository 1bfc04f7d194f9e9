import { UsageError } from '../errors.ts'

/** A condition on one value of the metadata. */
export interface MetadataFilter {
  /** The names that lead to the value. Each alternative is one way to read the path. At least one. */
  readonly paths: readonly (readonly string[])[]
  readonly value: string
  /** Whether only strings match. */
  readonly isString: boolean
}

export const metadataFilterLimits = {
  /** ClickHouse parses the metadata of every row for each filter, in about 2 µs. */
  filtersMax: 20,
  /** Metadata is at most this deep. */
  namesMax: 16,
  /** Far longer than any value that a user types. The query of `--follow` is part of a URL. */
  charactersMax: 4_096,
} as const

const SYNTAX = '--where must be metadata.NAME=VALUE, such as metadata.user.id=42'
/** Characters that may be operators in a later version, and blanks, must be quoted. */
const NAME = /(?:"(?:[^"\\]|\\.)*"|[^\s.="!<>~]+)/u
const CONDITION = new RegExp(`^metadata((?:\\.${NAME.source})+)=(.*)$`, 'su')

/**
 * Parses `metadata.user.id=42`. A name with dots, blanks or operators is a JSON string: `metadata."http.status"=500`.
 * Without quotes, dots may separate nested names or be part of one name.
 *
 * @throws UsageError
 */
export function parseMetadataFilter(text: string): MetadataFilter {
  const [, path, value] = CONDITION.exec(text) ?? []
  if (path === undefined || value === undefined) throw new UsageError(`${SYNTAX}, not "${text}"`)
  const { namesMax, charactersMax } = metadataFilterLimits
  if (text.length > charactersMax) {
    throw new UsageError(`--where has at most ${charactersMax.toLocaleString('en-US')} characters`)
  }
  const quoted = [...path.matchAll(new RegExp(NAME.source, 'gu'))].map(([name]) => name)
  if (quoted.length > namesMax) throw new UsageError(`--where has at most ${namesMax} names in a path`)
  const names = quoted.map((name) => parseName(name, text))
  const mayBeOneName = names.length > 1 && !path.includes('"')
  const string = parseJsonString(value)
  return {
    paths: [names, ...(mayBeOneName ? [[names.join('.')]] : [])],
    value: string ?? value,
    isString: string !== undefined,
  }
}

function parseName(name: string, text: string): string {
  if (!name.startsWith('"')) return name
  const parsed = parseJsonString(name)
  if (parsed === undefined) throw new UsageError(`--where has an invalid name in quotes: "${text}"`)
  return parsed
}

function parseJsonString(text: string): string | undefined {
  if (!text.startsWith('"')) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * The metadata in a form that ClickHouse can parse. It rejects numbers beyond 64 bits, with all the metadata around them:
 * they become strings, as in the column `metadata`. Otherwise one such number would hide an entry from all filters.
 */
const PARSEABLE_METADATA = `if(isValidJSON(metadata_text), metadata_text, replaceRegexpAll(metadata_text,
    '([\\\\[:,]\\\\s*)(-?[0-9]{19,}[0-9.eE+-]*|-?[0-9.]+[eE][+]?[0-9]{3,})', '\\\\1"\\\\2"'))`

/** A number as in JSON. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

const STRING = "('String')"
/** Values other than null, objects and arrays. */
const SCALARS = "('String', 'Int64', 'UInt64', 'Double', 'Bool')"

/**
 * An SQL condition. The names and the value are parameters only.
 *
 * @param prefix makes the names of the parameters unique within a query
 */
export function metadataCondition(
  { paths, value, isString }: MetadataFilter,
  prefix: string,
): { condition: string; params: Record<string, unknown> } {
  const number = !isString && NUMBER.test(value) && Number.isFinite(Number(value)) ? Number(value) : undefined
  const params: Record<string, unknown> = { [`${prefix}value`]: value }
  if (number !== undefined) params[`${prefix}number`] = number
  const alternatives = paths.flatMap((names, path) => {
    const parameters = names.map((_, index) => `${prefix}path${path}name${index}`)
    for (const [index, parameter] of parameters.entries()) params[parameter] = names[index]
    /** The arguments of ClickHouse's JSON functions. */
    const access = [PARSEABLE_METADATA, ...parameters.map((parameter) => `{${parameter}:String}`)].join(', ')
    const type = `JSONType(${access})`
    const found = [
      `(${type} IN ${isString ? STRING : SCALARS} AND JSONExtractString(${access}) = {${prefix}value:String})`,
    ]
    if (number !== undefined) {
      // Finds 42.0 and 4.2e1 for 42. Large integers are compared as text only: as floats they would equal their neighbours.
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
