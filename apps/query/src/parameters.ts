import { idTimeMs } from '@sluice/rows'
import { parseQuery, type Query, queryLimits, type SqlCondition, toSql } from '@sluice/query-language'
import { isId } from './cursor.ts'
import { type FieldSql, fieldSql } from './fields.ts'
import { Problem } from './problems.ts'
import { type Moment, parseMoment } from './times.ts'

type JsonObject = Readonly<Record<string, unknown>>

/** A parameter in the address of a request. */
export interface Parameter<T> {
  readonly description: string
  readonly schema: JsonObject
  /** @returns undefined if the value is not allowed. Throws a Problem of its own, if it has one */
  readonly read: (text: string) => T | undefined
  /** Of a request without it. Undefined for one that is required. */
  readonly absent?: { readonly value: T }
}

export type Parameters = Readonly<Record<string, Parameter<unknown>>>
export type ValuesOf<P extends Parameters> = {
  readonly [Name in keyof P]: P[Name] extends Parameter<infer T> ? T : never
}

const NAME_CHARACTERS_MAX = 256

function moment(description: string, usual: string): Parameter<Moment> {
  const value = parseMoment(usual) ?? { fromNowMs: 0 }
  return {
    description: `${description} ISO 8601, or relative to now: \`-15m\`, \`-1h\`, \`-7d\`, \`now\`.`,
    schema: { type: 'string', default: usual, examples: ['-15m', '2026-11-24', '2026-11-24T10:00:00Z'] },
    read: parseMoment,
    absent: { value },
  }
}

function integer(description: string, minimum: number, maximum: number, usual: number): Parameter<number> {
  return {
    description,
    schema: { type: 'integer', minimum, maximum, default: usual },
    read: (text) => {
      const value = /^\d{1,9}$/.test(text) ? Number(text) : -1
      return value >= minimum && value <= maximum ? value : undefined
    },
    absent: { value: usual },
  }
}

function oneOf<const T extends string>(description: string, values: readonly [T, ...T[]]): Parameter<T> {
  return {
    description,
    schema: { type: 'string', enum: values, default: values[0] },
    read: (text) => values.find((value) => value === text),
    absent: { value: values[0] },
  }
}

function optional<T>({ absent: _absent, ...parameter }: Parameter<T>): Parameter<T | undefined> {
  return { ...parameter, absent: { value: undefined } }
}

const id: Parameter<string> = {
  description: 'The id of an entry.',
  schema: { type: 'string', format: 'uuid' },
  read: (text) => (isId(text) ? text : undefined),
}

const field: Parameter<FieldSql> = {
  description: 'A column or a path in the metadata, as in a query.',
  schema: { type: 'string', maxLength: NAME_CHARACTERS_MAX },
  read: (name) => (name.length > NAME_CHARACTERS_MAX ? undefined : fieldSql(name)),
}

interface ParsedQuery {
  readonly text: string
  readonly query: Query
  readonly condition: SqlCondition
}

const LEVEL: FieldSql = { name: 'level', stored: 'level', text: (stored) => stored, parameters: {} }

/** A path that has several names is long in SQL, and 1,000 characters take ClickHouse 20 ms to plan. It would reject 262,144. */
const CONDITION_CHARACTERS_MAX = 100_000

function readQuery(text: string): ParsedQuery {
  const parsed = parseQuery(text)
  if ('errors' in parsed)
    throw new Problem('invalid_query', parsed.errors[0]?.message, { errors: parsed.errors })
  const { query } = parsed
  const condition = toSql(query)
  if (condition.sql.length <= CONDITION_CHARACTERS_MAX) return { text, query, condition }
  const message = 'The query has too many paths of several names.'
  throw new Problem('invalid_query', message, { errors: [{ position: 0, message }] })
}

const query: Parameter<ParsedQuery> = {
  description: 'Which entries, in the query language. Empty: all.',
  schema: { type: 'string', maxLength: queryLimits.lengthMax, default: '' },
  read: readQuery,
  absent: { value: readQuery('') },
}

const after = optional<string>({
  ...id,
  description:
    'The id of an entry: the answer waits, at most 10 s, until this entry and everything that was accepted before it can be seen.',
  // The time of another id is not one.
  read: (text) => (isId(text) && text[14] === '7' && idTimeMs(text) > 0 ? text : undefined),
})

const common = {
  query,
  from: moment('The earliest timestamp, included.', '-15m'),
  until: moment('The latest timestamp, not included.', 'now'),
  after,
}

const text = (description: string): Parameter<string> => ({
  description,
  schema: { type: 'string' },
  read: (given) => given,
})

/** The parameters of each operation, by the last part of its path. */
export const operationParameters = {
  logs: {
    summary: 'Entries, newest first',
    parameters: {
      ...common,
      order: oneOf('Newest or oldest first. Entries with the same timestamp are ordered by their ids.', [
        'desc',
        'asc',
      ]),
      limit: integer('The maximum number of entries.', 1, 1_000, 100),
      cursor: optional(
        text(
          '`next` of the page before, with the same query. The time range and the order are those of the first page.',
        ),
      ),
    },
  },
  histogram: {
    summary: 'Counts of entries by time and the values of a field',
    parameters: {
      ...common,
      by: { ...field, description: 'The field whose values are counted.', absent: { value: LEVEL } },
      buckets: integer('The maximum number of buckets.', 1, 500, 60),
    },
  },
  fields: { summary: 'The fields that matching entries have', parameters: common },
  values: {
    summary: 'The most frequent values of a field',
    parameters: { ...common, field, limit: integer('The maximum number of values.', 1, 1_000, 10) },
  },
  context: {
    summary: 'The entries around one',
    parameters: {
      id,
      query,
      before: integer('How many older entries.', 0, 1_000, 20),
      after_count: integer('How many newer entries.', 0, 1_000, 20),
      same: optional(oneOf('Only entries with the same service.', ['service'])),
    },
  },
  tail: {
    summary: 'Entries as they arrive, as server-sent events',
    parameters: {
      query,
      from: optional({ ...common.from, description: 'Also the entries that were received after this time.' }),
    },
  },
  export: {
    summary: 'All entries, oldest first',
    parameters: { ...common, format: oneOf('The format.', ['ndjson', 'csv']) },
  },
} as const satisfies Readonly<Record<string, { summary: string; parameters: Parameters }>>

export type OperationName = keyof typeof operationParameters
export type ParametersOf<Name extends OperationName> = ValuesOf<
  (typeof operationParameters)[Name]['parameters']
>

export const invalidParameter = (parameter: string, message: string): Problem =>
  new Problem('invalid_parameter', `${parameter} ${message}.`, { errors: [{ parameter, message }] })

/** Reads the parameters of a request. @throws Problem `invalid_parameter` for unknown ones too: they may be misspelt */
export function readParameters<P extends Parameters>(
  known: P,
  given: Readonly<Record<string, unknown>>,
): ValuesOf<P> {
  for (const name of Object.keys(given))
    if (!Object.hasOwn(known, name))
      throw invalidParameter(name.slice(0, NAME_CHARACTERS_MAX), 'is not a parameter here')
  const values = Object.entries(known).map(([name, { read, absent, schema }]) => {
    const value = given[name]
    if (value === undefined && absent !== undefined) return [name, absent.value]
    if (value === undefined) throw invalidParameter(name, 'is required')
    if (typeof value !== 'string') throw invalidParameter(name, 'may be given once')
    const result = read(value)
    if (result === undefined) throw invalidParameter(name, `must be ${expectation(schema)}`)
    return [name, result]
  })
  return Object.fromEntries(values) as ValuesOf<P>
}

function expectation({ enum: choices, minimum, maximum, format, examples }: JsonObject): string {
  if (Array.isArray(examples)) return `a time from 1970 to 2261, such as ${examples.join(', ')}`
  if (Array.isArray(choices)) return `one of ${choices.join(', ')}`
  if (typeof minimum === 'number') return `an integer from ${minimum} to ${Number(maximum)}`
  return format === 'uuid' ? 'the id of an entry' : 'valid: see the documentation'
}
