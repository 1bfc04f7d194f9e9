import { parseJson, type Json, scalarText } from './json.ts'
import { type Bound, type Query, type QueryColumn, queryColumns, type Test } from './query.ts'
import { entryTime } from './times.ts'
import { caseVariants, equalTexts, isInteger, isNumber, namesOf, needlesOfTest } from './values.ts'

/** An entry as the query API answers it. An absent column is '' or left out. */
export type QueriedEntry = Readonly<Partial<Record<QueryColumn, string>>> & {
  /** The JSON as it is stored. */
  readonly metadata?: string
}

/** Decides for one entry as ClickHouse decides with the condition of `toSql`. */
export function matcher(query: Query): (entry: QueriedEntry) => boolean {
  const matches = compile(query)
  return (entry) => {
    let metadata: Json | undefined
    return matches({
      column: (name) => entry[name] ?? '',
      metadataText: entry.metadata ?? '{}',
      metadata: () => (metadata ??= parseJson(entry.metadata ?? '{}')),
    })
  }
}

interface Subject {
  readonly column: (name: QueryColumn) => string
  readonly metadataText: string
  /** Parses the metadata only once, and only if a term needs it. */
  readonly metadata: () => Json
}
type Matches = (subject: Subject) => boolean

function compile(query: Query): Matches {
  if (query.type === 'all') return () => true
  if (query.type === 'not') {
    const matches = compile(query.operand)
    return (subject) => !matches(subject)
  }
  if (query.type === 'term') {
    const { field, test } = query
    return field.type === 'path' ? pathMatches(field.path, test) : columnMatches(field.name, test)
  }
  const operands = query.operands.map(compile)
  return query.type === 'and'
    ? (subject) => operands.every((matches) => matches(subject))
    : (subject) => operands.some((matches) => matches(subject))
}

function columnMatches(column: QueryColumn, test: Test): Matches {
  const kind = queryColumns[column]
  if (test.type === 'exists' && (kind === 'id' || kind === 'time')) return () => true
  if (kind === 'time') {
    const passes = textTest(test)
    return (subject) => passes(entryTime(subject.column(column)))
  }
  const passes = kind === 'contained' ? caselessTest(test) : textTest(test)
  if (test.type === 'exists' || test.type === 'range')
    return (subject) => subject.column(column) !== '' && passes(subject.column(column))
  return (subject) => passes(subject.column(column))
}

function pathMatches(path: readonly string[], test: Test): Matches {
  const needles = needlesOfTest(path, test)
  const names = namesOf(path)
  const passes = textTest(test.type === 'equals' ? { ...test, texts: equalTexts(test.texts) } : test)
  // Null has a text and no order.
  const scalarPasses = (value: Json): boolean =>
    typeof value === 'string' && !(value === 'null' && test.type === 'range') && passes(scalarText(value))
  const valuePasses = (value: Json): boolean =>
    test.type === 'exists'
      ? value !== 'null'
      : Array.isArray(value)
        ? value.some(scalarPasses)
        : scalarPasses(value)
  return ({ metadataText, metadata }) => {
    if (needles?.some((needle) => metadataText.includes(needle)) === false) return false
    return names.some((keys) => {
      let value: Json | undefined = metadata()
      for (const key of keys) value = value instanceof Map ? value.get(key) : undefined
      return value !== undefined && valuePasses(value)
    })
  }
}

function textTest(test: Test): (text: string) => boolean {
  if (test.type === 'exists') return () => true
  if (test.type === 'equals') return (text) => test.texts.includes(text)
  if (test.type !== 'range') return (text) => text.startsWith(test.text)
  const { from, to } = test
  return (text) => (!from || isOnSide(text, from, 1)) && (!to || isOnSide(text, to, -1))
}

/** A test of text whose case does not matter, except for `:=`. */
function caselessTest(test: Test): (text: string) => boolean {
  if (test.type !== 'contains' && test.type !== 'prefix') return textTest(test)
  const pattern = caseVariants(test.text)
    .map((variant) => variant.replaceAll(/[^]/g, (unit) => anyCase(unit)))
    .join('|')
  const regex = new RegExp(test.type === 'prefix' ? `^(?:${pattern})` : pattern)
  return (text) => regex.test(text)
}

function anyCase(unit: string): string {
  return /[a-z]/.test(unit)
    ? `[${unit}${unit.toUpperCase()}]`
    : `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** @param side 1 if a text must be above the bound, -1 if below */
function isOnSide(text: string, bound: Bound, side: 1 | -1): boolean {
  const order = isNumber(bound.text) ? compareNumbers(text, bound.text) : compareTexts(text, bound.text)
  return order === 0 ? bound.inclusive : order === side
}

/** @returns NaN if the first is no number */
function compareNumbers(a: string, b: string): number {
  if (!isNumber(a)) return Number.NaN
  const [x, y] = isInteger(a) && isInteger(b) ? [BigInt(a), BigInt(b)] : [Number(a), Number(b)]
  return x === y ? 0 : x > y ? 1 : -1
}

/** Compares in the order of UTF-8, in which characters beyond 16 bits are last. */
function compareTexts(a: string, b: string): number {
  let index = 0
  while (index < a.length && a[index] === b[index]) index += 1
  return Math.sign(rankAt(a, index) - rankAt(b, index))
}

function rankAt(text: string, index: number): number {
  if (index >= text.length) return -1
  const code = text.charCodeAt(index)
  return code >= 0xd800 && code < 0xe000 ? code + 0x2800 : code
}
