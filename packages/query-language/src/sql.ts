import type { Bound, Query, QueryColumn, Test } from './query.ts'
import { queryColumns } from './query.ts'
import {
  caseVariants,
  comparesNumbers,
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
  switch (query.type) {
    case 'all':
      return 'true'
    case 'and':
      return all(query.operands.map((operand) => querySql(operand, bind)))
    case 'or':
      return any(query.operands.map((operand) => querySql(operand, bind)))
    case 'not':
      return `NOT ${querySql(query.operand, bind)}`
    case 'term':
      return query.field.type === 'path'
        ? pathSql(query.field.path, query.test, bind)
        : columnSql(query.field.name, query.test, bind)
  }
}

function columnSql(column: QueryColumn, test: Test, bind: Bind): string {
  const kind = queryColumns[column]
  switch (test.type) {
    case 'exists':
      return kind === 'id' || kind === 'time' ? 'true' : `${column} != ''`
    case 'contains':
      // An index on `lower(message)` can serve LIKE.
      return any(
        caseVariants(test.text).map(
          (text) =>
            `lower(${column}) LIKE ${bind('String', `%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`)}`,
        ),
      )
    case 'prefix':
      return kind === 'contained'
        ? any(caseVariants(test.text).map((text) => `startsWith(lower(${column}), ${bind('String', text)})`))
        : `startsWith(${column}, ${bind('String', test.text)})`
    case 'equals':
      return oneOf(column, test.texts, kind === 'id' ? 'UUID' : 'String', bind)
    case 'range': {
      if (kind === 'time')
        return rangeSql(test, (operator, bound) => `${column} ${operator} ${bind(TIME, bound.text)}`)
      const isText = `${column} != ''`
      return all([
        isText,
        rangeSql(test, (operator, bound) => boundSql(column, column, operator, bound, bind)),
      ])
    }
  }
}

const TIME = "DateTime64(6, 'UTC')"

function oneOf(expression: string, texts: readonly string[], type: string, bind: Bind): string {
  if (texts.length === 0) return 'false'
  return `${expression} IN (${texts.map((text) => bind(type, text)).join(', ')})`
}

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
  if (!comparesNumbers(bound)) return `${text} ${operator} ${bind('String', bound.text)}`
  const float = `toFloat64OrZero(${number}) ${operator} ${bind('Float64', Number(bound.text))}`
  // A float holds any 15 digits exactly, and those of longer integers are not equal to them.
  const isExact = isInteger(bound.text) && bound.text.length > 15
  const integer = `toInt256OrZero(${number}) ${operator} ${bind('Int256', bound.text)}`
  // Most values are rejected before the pattern is tried.
  return all([
    isExact ? `if(match(${number}, '${INTEGER_PATTERN}'), ${integer}, ${float})` : float,
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

function pathSql(path: readonly string[], test: Test, bind: Bind): string {
  const names = namesOf(path)
  const raws = (json: string): string[] =>
    names.map((keys) => `JSONExtractRaw(${json}, ${keys.map((key) => bind('String', key)).join(', ')})`)
  const found = raws('metadata_text').map((raw, index) => {
    const condition = valueSql(raw, test, bind)
    const key = names[index]?.slice(-1) ?? []
    return index === 0 ? condition : all([...hasNeedle(needlesOf(key), bind), condition])
  })
  const isUnread = `${raws('metadata_text')[0]} = '' AND NOT isValidJSON(metadata_text)`
  const foundInQuoted = `arrayExists(j -> ${anyValueSql(raws('j'), test, bind)}, [${QUOTED_TEXT}])`
  return all([
    ...hasNeedle(needlesOfTest(path, test), bind),
    any([...found, `(${isUnread} AND ${foundInQuoted})`]),
  ])
}

function hasNeedle(needles: string[] | undefined, bind: Bind): string[] {
  return needles === undefined ? [] : [`multiSearchAny(metadata_text, ${bind('Array(String)', needles)})`]
}

/** @param raw the JSON of a value as ClickHouse writes it, '' if there is none */
function valueSql(raw: string, test: Test, bind: Bind): string {
  if (test.type === 'exists') return scalarSql(raw, test, bind)
  const elements = `arrayExists(e -> ${scalarSql('e', test, bind)}, JSONExtractArrayRaw(${raw}))`
  return `(${scalarSql(raw, test, bind)} OR (startsWith(${raw}, '[') AND ${elements}))`
}

/** The same for several values, in a shorter expression that is slower. */
function anyValueSql(raws: readonly string[], test: Test, bind: Bind): string {
  const values = `[${raws.join(', ')}]`
  const lists = `arrayMap(r -> if(startsWith(r, '['), JSONExtractArrayRaw(r), [r]), ${values})`
  const scalars = test.type === 'exists' ? values : `arrayFlatten(${lists})`
  return `arrayExists(e -> ${scalarSql('e', test, bind)}, ${scalars})`
}

function scalarSql(raw: string, test: Test, bind: Bind): string {
  switch (test.type) {
    case 'exists':
      return `${raw} NOT IN ('', 'null')`
    case 'contains':
    case 'prefix': {
      const { text } = test
      const begins = (start: string): string => `startsWith(${raw}, ${bind('String', start)})`
      // Only what begins like this is a number, true, false or null.
      return any([
        begins(JSON.stringify(text).slice(0, -1)),
        ...(/^[-\dtfn]/.test(text) ? [begins(text)] : []),
      ])
    }
    case 'equals': {
      const texts = equalTexts(test.texts)
      const literals = texts.filter((text) =>
        isNumber(text) ? numberText(text) === text : ['true', 'false', 'null'].includes(text),
      )
      return `has(${bind('Array(String)', [...texts.map((text) => JSON.stringify(text)), ...literals])}, ${raw})`
    }
    case 'range': {
      const number = `trimBoth(${raw}, '"')`
      const isString = `startsWith(${raw}, '"')`
      const text = `if(${isString}, JSONExtractString(${raw}), ${raw})`
      const isText = `(${isString} OR match(${raw}, '^[-0-9tf]'))`
      const range = rangeSql(test, (operator, bound) => boundSql(number, text, operator, bound, bind))
      return [test.from, test.to].some((bound) => bound && !comparesNumbers(bound))
        ? all([isText, range])
        : range
    }
  }
}
