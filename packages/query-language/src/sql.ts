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
  numberText,
  isNumber,
} from './values.ts'

/** A condition, with placeholders such as `{q0:String}`, and the values of its parameters. */
export interface SqlCondition {
  readonly sql: string
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
  return { sql: querySql(query, bind), parameters }
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
  if (query.type === 'term') {
    const { field, test } = query
    return field.type === 'path' ? pathSql(field.path, test, bind) : columnSql(field.name, test, bind)
  }
  const operands = query.operands.map((operand) => querySql(operand, bind))
  return query.type === 'and' ? all(operands) : any(operands)
}

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
      // An index on `lower(message)` can serve LIKE.
      const pattern = variant.replaceAll(/[\\%_]/g, String.raw`\$&`)
      return `lower(${column}) LIKE ${bind('String', `${test.type === 'prefix' ? '' : '%'}${pattern}%`)}`
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
const QUOTED_TEXT =
  `arrayStringConcat(arrayMap(t -> if(match(t, '^-?[0-9]') AND NOT isValidJSON(t), concat('"', t, '"'), t), ` +
  `extractAll(metadata_text, '${escaped(TOKENS)}')))`

/**
 * ClickHouse computes an expression again in each operand of AND and OR, which it evaluates for the remaining rows only. So what has no needle
 * is replaced by an empty object, and the value is extracted once, outside of such operands.
 */
function pathSql(path: readonly string[], test: Test, bind: Bind): string {
  const names = namesOf(path)
  const valueIn = (json: string, keys: readonly string[]): string =>
    `${json}, ${keys.map((key) => bind('String', key)).join(', ')}`
  const needles = hasNeedle(needlesOfTest(path, test), bind)
  const conditions = names.map((keys, index) => {
    const isPossible = [...needles, ...(index === 0 ? [] : hasNeedle(needlesOf(keys.slice(-1)), bind))]
    const json = isPossible.length === 0 ? 'metadata_text' : `if(${all(isPossible)}, metadata_text, '{}')`
    const value = valueIn(json, keys)
    const raw = `JSONExtractRaw(${value})`
    const isUnread = `${raw} = '' AND NOT isValidJSON(${json})`
    const inQuoted =
      test.type === 'exists'
        ? any(names.map((other) => scalarSql(`JSONExtractRaw(${valueIn('j', other)})`, test, bind)))
        : existsSql(
            `arrayConcat(${names.map((other) => listSql(valueIn('j', other))).join(', ')})`,
            test,
            bind,
          )
    const rare = [
      `(startsWith(${raw}, '[') AND ${existsSql(`JSONExtractArrayRaw(${value})`, test, bind)})`,
      ...(index === 0 ? [`(${isUnread} AND arrayExists(j -> ${inQuoted}, [${QUOTED_TEXT}]))`] : []),
    ]
    return `if(${raw} = '' OR startsWith(${raw}, '['), ${any(rare)}, ${scalarSql(raw, test, bind)})`
  })
  return conditions.length > 1 ? `greatest(${conditions.join(', ')})` : conditions.join('')
}

function hasNeedle(needles: string[] | undefined, bind: Bind): string[] {
  return needles === undefined ? [] : [`multiSearchAny(metadata_text, ${bind('Array(String)', needles)})`]
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
    const literals = texts.filter((text) =>
      isNumber(text) ? numberText(text) === text : ['true', 'false', 'null'].includes(text),
    )
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
