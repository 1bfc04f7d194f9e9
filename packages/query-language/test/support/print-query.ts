import type { Bound, Field, Query, Test } from '../../src/query.ts'

const quoted = (text: string): string =>
  `"${text.replaceAll(/["\\\n\r\t]/g, (character) => `\\${escapes[character] ?? character}`)}"`
const escapes: Readonly<Record<string, string>> = { '\n': 'n', '\r': 'r', '\t': 't' }

/** The text of a query, with all quotes and parentheses. `parseQuery` makes the same tree of it, except for positions. */
export function printQuery(query: Query): string {
  if (query.type === 'all') return ''
  if (query.type === 'not') return `NOT ${printQuery(query.operand)}`
  if (query.type === 'term') return `${printField(query.field)}:${printTest(query.test)}`
  return `(${query.operands.map(printQuery).join(query.type === 'and' ? ' ' : ' OR ')})`
}

function printField(field: Field): string {
  return field.type === 'column' ? field.name : `metadata.${field.path.map(quoted).join('.')}`
}

function printTest(test: Test): string {
  if (test.type === 'exists') return '*'
  if (test.type === 'equals') return `=${quoted(test.texts[0] ?? '')}`
  if (test.type === 'range') return [printBound('>', test.from), printBound('<', test.to)].join('')
  return `${quoted(test.text)}${test.type === 'prefix' ? '*' : ''}`
}

function printBound(operator: string, bound: Bound | undefined): string {
  return bound === undefined ? '' : `${operator}${bound.inclusive ? '=' : ''}${quoted(bound.text)}`
}
