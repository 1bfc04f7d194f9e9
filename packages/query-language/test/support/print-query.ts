import type { Bound, Field, Query, Test } from '../../src/query.ts'

const quoted = (text: string): string =>
  `"${text.replaceAll(/["\\\n\r\t]/g, (character) => `\\${escapes[character] ?? character}`)}"`
const escapes: Readonly<Record<string, string>> = { '\n': 'n', '\r': 'r', '\t': 't' }

/** The text of a query, with all quotes and parentheses. `parseQuery` makes the same tree of it, except for positions. */
export function printQuery(query: Query): string {
  switch (query.type) {
    case 'all':
      return ''
    case 'and':
      return `(${query.operands.map(printQuery).join(' ')})`
    case 'or':
      return `(${query.operands.map(printQuery).join(' OR ')})`
    case 'not':
      return `NOT ${printQuery(query.operand)}`
    case 'term':
      return `${printField(query.field)}:${printTest(query.test)}`
  }
}

function printField(field: Field): string {
  return field.type === 'column' ? field.name : `metadata.${field.path.map(quoted).join('.')}`
}

function printTest(test: Test): string {
  switch (test.type) {
    case 'exists':
      return '*'
    case 'contains':
      return quoted(test.text)
    case 'prefix':
      return `${quoted(test.text)}*`
    case 'equals':
      return `=${quoted(test.texts[0] ?? '')}`
    case 'range':
      return [printBound('>', test.from), printBound('<', test.to)].join('')
  }
}

function printBound(operator: string, bound: Bound | undefined): string {
  return bound === undefined ? '' : `${operator}${bound.inclusive ? '=' : ''}${quoted(bound.text)}`
}
