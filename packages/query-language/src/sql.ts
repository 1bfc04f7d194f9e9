import type { Bound, Query, QueryColumn, Test } from './query.ts'
import { queryColumns } from './query.ts'
import {
  caseVariants,
  equalTexts,
  INTEGER_PATTERN,
  isInteger,
  namesOf,
  needlesOf,
  needlesOfTest,
  NUMBER_PATTERN,
  isNumber,
  rareEnd,
} from './values.ts'

/** A condition, with placeholders such as `{q0:String}`, and the values of its parameters. */
export interface SqlCondition {
  readonly sql: string
  /** A part of it that rejects most entries by one long text, without parsing any JSON. */
  readonly first?: string
  readonly parameters: Readonly<Record<string, unknown>>
}

/** The condition on the columns of the table `logs`. All that a user wrote is in parameters. It is 0 or 1, and never NULL. */
export function toSql(query: Query): SqlCondition {
  const parameters: Record<string, unknown> = {}
  const names = new Map<string, string>()
  const bind: Bind = (type, value) => {
    const key = `${type} ${JSON.stringify(value)}`
    const name = names.get(key) ?? `q${names.size}`
    names.set(key, name)
    parameters[name] = value
    return `{${name}:${type}}`
  }
  const sql = querySql(query, bind)
  const first = conjuncts(query, bind).filter((condition) => costOf(condition) === 1)
  return { sql, ...(first.length > 0 && { first: all(first) }), parameters }
}

/** Adds a parameter. Returns its placeholder. */
type Bind = (type: string, value: unknown) => string

const all = (conditions: readonly string[]): string => chain(conditions, 'AND', 'true')
const any = (conditions: readonly string[]): string => chain(conditions, 'OR', 'false')
function chain(conditions: readonly string[], operator: string, none: string): string {
  return conditions.length > 1 ? `(${conditions.join(` ${operator} `)})` : (conditions[0] ?? none)
}

function querySql(query: Query, bind: Bind): string {
  if (query.type === 'all') return 'true'
  if (query.type === 'not') return `NOT ${querySql(query.operand, bind)}`
  if (query.type === 'or') return any(query.operands.map((operand) => querySql(operand, bind)))
  return all(conjuncts(query, bind).toSorted((a, b) => costOf(a) - costOf(b)))
}

/** Conditions all of which must hold. ClickHouse evaluates each for the rows that remain after those before it. */
function conjuncts(query: Query, bind: Bind): string[] {
  if (query.type === 'and') return query.operands.flatMap((operand) => conjuncts(operand, bind))
  if (query.type !== 'term') return [querySql(query, bind)]
  const { field, test } = query
  return field.type === 'path' ? pathSql(field.path, test, bind) : [columnSql(field.name, test, bind)]
}

/** Long texts are expensive to read, and JSON to parse. */
const costOf = (sql: string): number =>
  /\bJSONExtract/.test(sql) ? 2 : /metadata_text|message|stack/.test(sql) ? 1 : 0

function columnSql(column: QueryColumn, test: Test, bind: Bind): string {
  const kind = queryColumns[column]
  if (test.type === 'exists') return kind === 'id' || kind === 'time' ? 'true' : `${column} != ''`
  if (test.type === 'equals') {
    const values = test.texts.map((text) => bind(kind === 'id' ? 'UUID' : 'String', text))
    return values.length === 0 ? 'false' : `${column} IN (${values.join(', ')})`
  }
  if (test.type === 'range') {
    if (kind === 'time')
      return rangeSql(test, (operator, bound) => `${column} ${operator} ${bind(TIME, bound.text)}`)
    const range = rangeSql(test, (operator, bound) => boundSql(column, column, operator, bound, bind))
    return all([`${column} != ''`, range])
  }
  const { text } = test
  if (kind !== 'contained') return `startsWith(${column}, ${bind('String', text)})`
  return any(
    caseVariants(text).map((variant) => {
      // An index on `lower(message)` can serve LIKE. Without one, to search is cheaper than to convert what is searched.
      const pattern = variant.replaceAll(/[\\%_]/g, String.raw`\$&`)
      const like = (start: string): string => `lower(${column}) LIKE ${bind('String', `${start}${pattern}%`)}`
      if (test.type === 'prefix') return like('')
      const end = rareEnd(variant)
      const position = /[a-z]/.test(end) ? 'positionCaseInsensitive' : 'position'
      return all([`${position}(${column}, ${bind('String', end)}) > 0`, like('%')])
    }),
  )
}

const TIME = "DateTime64(6, 'UTC')"

function rangeSql(
  { from, to }: Test & { type: 'range' },
  sqlOf: (operator: string, bound: Bound) => string,
): string {
  return all([
    ...(from ? [sqlOf(from.inclusive ? '>=' : '>', from)] : []),
    ...(to ? [sqlOf(to.inclusive ? '<=' : '<', to)] : []),
  ])
}

/**
 * @param number the value, if it is a number
 * @param text the value in any case
 */
function boundSql(number: string, text: string, operator: string, bound: Bound, bind: Bind): string {
  if (!isNumber(bound.text)) return `${text} ${operator} ${bind('String', bound.text)}`
  const float = `toFloat64OrZero(${number}) ${operator} ${bind('Float64', Number(bound.text))}`
  // An integer of at most 15 digits is a float exactly, and no other integer becomes the same float.
  const isLong = isInteger(bound.text) && bound.text.length > 15
  // Most values are rejected before the pattern is tried.
  return all([
    isLong
      ? `if(match(${number}, '${INTEGER_PATTERN}'), toInt256OrZero(${number}) ${operator} ${bind('Int256', bound.text)}, ${float})`
      : float,
    `match(${number}, '${escaped(NUMBER_PATTERN)}')`,
  ])
}

const escaped = (pattern: string): string => pattern.replaceAll('\\', '\\\\')

/** Each string, each number and each other character of a JSON text. */
const TOKENS = String.raw`"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|[^"0-9-]+|-`

/** `metadata_text` with numbers as strings if they are beyond what ClickHouse's parser takes. It takes no text that has one. */
export const QUOTED_TEXT =
  `arrayStringConcat(arrayMap(t -> if(match(t, '^-?[0-9]') AND NOT isValidJSON(t), concat('"', t, '"'), t), ` +
  `extractAll(metadata_text, '${escaped(TOKENS)}')))`

/**
 * ClickHouse computes an expression again in each operand of AND and OR, which it evaluates for the remaining rows only. So the needles come
 * first, and the value is extracted once, as the argument of a lambda.
 */
function pathSql(path: readonly string[], test: Test, bind: Bind): string[] {
  const names = namesOf(path)
  const valueIn = (json: string, keys: readonly string[]): string =>
    `${json}, ${keys.map((key) => bind('String', key)).join(', ')}`
  const conditions = names.map((keys, index) => {
    const value = valueIn('metadata_text', keys)
    const inQuoted =
      test.type === 'exists'
        ? any(names.map((other) => scalarSql(`JSONExtractRaw(${valueIn('j', other)})`, test, bind)))
        : existsSql(
            `arrayConcat(${names.map((other) => listSql(valueIn('j', other))).join(', ')})`,
            test,
            bind,
          )
    const isUnread = "r = '' AND NOT isValidJSON(metadata_text)"
    const rare = [
      `(startsWith(r, '[') AND ${existsSql(`JSONExtractArrayRaw(${value})`, test, bind)})`,
      ...(index === 0 ? [`(${isUnread} AND arrayExists(j -> ${inQuoted}, [${QUOTED_TEXT}]))`] : []),
    ]
    const passes = `if(r = '' OR startsWith(r, '['), ${any(rare)}, ${scalarSql('r', test, bind)})`
    const needles = index === 0 ? [] : hasNeedle(needlesOf(keys.slice(-1)), bind)
    return all([...needles, `arrayExists(r -> ${passes}, [JSONExtractRaw(${value})])`])
  })
  const numbers = mayHaveNumber(path.at(-1) ?? '', test, bind)
  // The needles of a range are its name, which the numbers need too.
  const needles =
    test.type === 'range' && numbers.length > 0 ? [] : hasNeedle(needlesOfTest(path, test), bind)
  return [...needles, ...numbers, any(conditions)]
}

/** A name that JSON writes as it is, or with `\\u`. */
const PLAIN_NAME = /^[\w.@-]+$/

/**
 * Rejects most entries in which a number is too small or too large, at a tenth of what it takes to parse the JSON. If the name is there once,
 * what follows it is the value: a number, or one in quotes. For everything else ClickHouse's function returns 0. It may be wrong by some of
 * the last digits.
 */
function mayHaveNumber(name: string, test: Test, bind: Bind): string[] {
  const bounds = numbersOf(test)
  if (bounds === undefined || !PLAIN_NAME.test(name)) return []
  const value = `simpleJSONExtractFloat(metadata_text, ${bind('String', name)})`
  const times = `countSubstrings(metadata_text, ${bind('String', `${name}"`)})`
  const isInside = bounds.map(({ operator, bound }) => `(${value} ${operator} ${bind('Float64', bound)})`)
  return [
    `position(metadata_text, ${bind('String', String.raw`\u`)}) + (${times} > 1) + (${times} = 1) * ((${value} = 0) + ${isInside.join(' * ')}) > 0`,
  ]
}

/** The numbers that a test allows, and some more. Undefined if it is about other texts too. */
function numbersOf(test: Test): { operator: string; bound: number }[] | undefined {
  const [lowest, highest] =
    test.type === 'range'
      ? [test.from && [test.from.text], test.to && [test.to.text]]
      : test.type === 'equals'
        ? [test.texts, test.texts]
        : []
  const texts = [...(lowest ?? []), ...(highest ?? [])]
  if (texts.length === 0 || !texts.every((text) => isNumber(text) && Number.isFinite(Number(text))))
    return undefined
  return [
    ...(lowest ? [{ operator: '>=', bound: boundOf(lowest, -1) }] : []),
    ...(highest ? [{ operator: '<=', bound: boundOf(highest, 1) }] : []),
  ]
}

/** A number beyond the largest (1) or smallest (-1) of the texts. */
function boundOf(texts: readonly string[], side: 1 | -1): number {
  const number = side * Math.max(...texts.map((text) => side * Number(text)))
  return number + side * Math.abs(number) * 1e-9
}

function hasNeedle(needles: string[] | undefined, bind: Bind): string[] {
  // Faster than `multiSearchAny`, and than OR, which copies the rows that its next operand gets.
  const places = needles?.map((needle) => `position(metadata_text, ${bind('String', needle)})`)
  return places === undefined ? [] : [`${places.join(' + ')} > 0`]
}

/** The elements of a list, or the value itself. */
function listSql(value: string): string {
  const raw = `JSONExtractRaw(${value})`
  return `if(startsWith(${raw}, '['), JSONExtractArrayRaw(${value}), [${raw}])`
}

/** Whether an element passes. For the test of existence the list itself does. */
function existsSql(list: string, test: Test, bind: Bind): string {
  return test.type === 'exists' ? 'true' : `arrayExists(e -> ${scalarSql('e', test, bind)}, ${list})`
}

/** @param raw the JSON of a value as ClickHouse writes it, '' if there is none */
function scalarSql(raw: string, test: Test, bind: Bind): string {
  if (test.type === 'exists') return `${raw} NOT IN ('', 'null')`
  if (test.type === 'equals') {
    const texts = equalTexts(test.texts)
    const literals = texts.filter((text) => isNumber(text) || ['true', 'false', 'null'].includes(text))
    const raws = [...texts.map((text) => JSON.stringify(text)), ...literals]
    return `has(${bind('Array(String)', raws)}, ${raw})`
  }
  if (test.type === 'range') {
    const isString = `startsWith(${raw}, '"')`
    const number = `trimBoth(${raw}, '"')`
    const text = `if(${isString}, JSONExtractString(${raw}), ${raw})`
    const range = rangeSql(test, (operator, bound) => boundSql(number, text, operator, bound, bind))
    if ([test.from, test.to].every((bound) => !bound || isNumber(bound.text))) return range
    // Lists, objects and null have no order.
    return all([`(${isString} OR match(${raw}, '^[-0-9tf]'))`, range])
  }
  const begins = (start: string): string => `startsWith(${raw}, ${bind('String', start)})`
  // Only what begins like this is a number, true, false or null.
  const literal = /^[-\dtfn]/.test(test.text) ? [begins(test.text)] : []
  return any([begins(JSON.stringify(test.text).slice(0, -1)), ...literal])
}
