import { runsOf } from '@sluice/harness'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseQuery, type QueryError } from '../src/parse.ts'
import { highlights, type Query, queryColumns, queryLimits } from '../src/query.ts'
import { anyQuery, anyTerm } from './support/arbitrary-query.ts'
import { printQuery } from './support/print-query.ts'
import { queryOf } from './support/query-of.ts'

function errorsOf(text: string): readonly QueryError[] {
  const result = parseQuery(text)
  return 'errors' in result ? result.errors : []
}

/** A tree without the positions of its terms. */
function withoutPositions(query: Query): Query {
  if (query.type === 'and' || query.type === 'or')
    return { ...query, operands: query.operands.map(withoutPositions) }
  if (query.type === 'not') return { ...query, operand: withoutPositions(query.operand) }
  return query.type === 'term' ? { ...query, position: 0, end: 0 } : query
}

const termsOf = (query: Query): string => printQuery(query).replaceAll('metadata.', '')

describe('a query', () => {
  it('is the tree that its text is printed from', () => {
    fc.assert(
      fc.property(anyQuery, (query) => {
        const text = printQuery(query)
        fc.pre(text.length <= queryLimits.lengthMax && text.split(':').length <= queryLimits.termsMax)
        expect(withoutPositions(queryOf(text))).toEqual(query)
      }),
      runsOf(500),
    )
  })

  it('has the position of each of its terms', () => {
    const text = ' a  level:error (user.id:>=4 OR -"b c"*) '
    const found: string[] = []
    const visit = (query: Query): void => {
      if (query.type === 'term') found.push(text.slice(query.position, query.end))
      if (query.type === 'and' || query.type === 'or') query.operands.forEach(visit)
      if (query.type === 'not') visit(query.operand)
    }
    visit(queryOf(text))
    expect(found).toEqual(['a', 'level:error', 'user.id:>=4', '"b c"*'])
  })

  it.each([
    ['a b OR NOT c d', '((message:"a" message:"b") OR (NOT message:"c" message:"d"))'],
    ['a AND (b OR c)', '(message:"a" (message:"b" OR message:"c"))'],
    ['or and not', '(message:"or" message:"and" message:"not")'],
    ['- a -> --b', '(message:"-" message:"a" message:"->" message:"--b")'],
    ['f:(a OR -b:c >=4)', '("f":="a" OR (NOT "f":="b:c" "f":>="4"))'],
    ['f:a..b', '"f":="a..b"'],
    ['f:warn..error', '"f":="warn..error"'],
    ['f:-5..-1', '"f":>="-5"<="-1"'],
    ['f:=a*', '"f":="a*"'],
    ['metadata.level:x', '"level":="x"'],
    ['metadata.metadata.a:x', '"metadata"."a":="x"'],
    ['"level":x', '"level":="x"'],
    ['"a:b":c', '"a:b":="c"'],
    ['f:a:b:c', '"f":="a:b:c"'],
    ['timestamp:>2026-11-24', 'timestamp:>="2026-11-25 00:00:00.000000"'],
    ['timestamp:<=2026-11-24T10:00:00.5+02', 'timestamp:<"2026-11-24 08:00:00.600000"'],
    ['trace\u00a0x', '(message:"trace" message:"x")'],
    [String.raw`"\u00e9\"\\\n"`, String.raw`message:"é\"\\\n"`],
  ])('%s is %s', (text, tree) => expect(termsOf(queryOf(text))).toBe(tree))

  it('is everything if it is empty', () => {
    expect(queryOf(' ')).toEqual({ type: 'all' })
  })
})

describe('an error', () => {
  it.each([
    ['level: error', [6]],
    ['a OR OR b AND', [5, 13]],
    ['AND a', [0]],
    ['NOT', [3]],
    ['() f(', [0, 4, 5]],
    ['a*b timestamp:x id:y', [1, 14, 19]],
    ['"a"b', [0]],
    [String.raw`"a\p" c*d`, [2, 7]],
    ['metadata:x', [0]],
    ['user.id:', []],
    ['metadata.user.id:', [17]],
    ['timestamp:2026-02-30', [10]],
    ['timestamp:2026-11-24T25:00', [10]],
    ['timestamp:2026-11-24*', [10]],
    ['id:>7', [4]],
  ])('of %s is at %j', (text, positions) => {
    expect(errorsOf(text).map(({ position }) => position)).toEqual(positions)
  })

  const { lengthMax, termsMax, depthMax, pathNamesMax } = queryLimits
  it.each([
    ['length', (count: number) => 'x'.repeat(count), lengthMax],
    ['number of values', (count: number) => 'a '.repeat(count), termsMax],
    ['depth of parentheses', (count: number) => `${'('.repeat(count)}a${')'.repeat(count)}`, depthMax],
    ['depth of negations', (count: number) => `${'NOT '.repeat(count)}a`, depthMax],
    ['names of a path', (count: number) => `${'a.'.repeat(count - 1)}a:x`, pathNamesMax],
  ])('ends a query above the limit on the %s', (_limit, textOf, max) => {
    expect(errorsOf(textOf(max))).toEqual([])
    expect(errorsOf(textOf(max + 1))).toHaveLength(1)
  })

  it('is all that any text can cause', () => {
    const pieces = fc.constantFrom(
      ...'( ) " \\ - : * NOT OR AND level: id: timestamp:> a. .. " ='.split(/(?= )/),
    )
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(pieces, { maxLength: 60 }).map((parts) => parts.join('')),
    )
    fc.assert(
      fc.property(text, (any) => {
        const errors = errorsOf(any)
        expect(errors.length).toBeLessThanOrEqual(queryLimits.errorsMax)
        for (const { position } of errors) expect(position).toBeLessThanOrEqual(any.length)
      }),
      runsOf(2_000),
    )
  })

  it.each(['(', '"', '-(', 'NOT ', 'a"', '"a".', '\\', 'a.', '"\\', ')'])(
    'comes soon for a text of many %s',
    (piece) => {
      expect(errorsOf(piece.repeat(50_000))).toHaveLength(1)
      parseQuery(piece.repeat(queryLimits.lengthMax).slice(0, queryLimits.lengthMax))
    },
  )
})

it('highlights what the message contains, and nothing that it must not contain', () => {
  const text = 'a (b* OR "c d") -e NOT (f) message:="G" message:>=h url:i level:error a *'
  expect(highlights(queryOf(text))).toEqual(['a', 'b', 'c d', 'G'])
})

it('tests every column', () => {
  const columns = new Set<string>()
  for (const query of fc.sample(anyTerm, runsOf(2_000)))
    if (query.type === 'term' && query.field.type === 'column') columns.add(query.field.name)
  expect([...columns].toSorted()).toEqual(Object.keys(queryColumns).toSorted())
})
