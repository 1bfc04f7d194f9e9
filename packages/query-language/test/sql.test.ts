import { entryFields } from '@sluice/schema'
import { runsOf } from '@sluice/harness'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { matcher } from '../src/match.ts'
import { queryColumns } from '../src/query.ts'
import { toSql } from '../src/sql.ts'
import { anyQuery } from './support/arbitrary-query.ts'
import { queryOf } from './support/query-of.ts'

const TOKEN = /\{q\d+:[^}]*\}|'(?:[^'\\]|\\.)*'|[A-Za-z_]\w*|\S/g
const words =
  'NOT AND OR IN LIKE true false if has match lower startsWith trimBoth toFloat64OrZero toInt256OrZero position positionCaseInsensitive countSubstrings simpleJSONExtractFloat metadata_text ' +
  'JSONExtractRaw JSONExtractString JSONExtractArrayRaw isValidJSON arrayExists arrayMap arrayConcat arrayStringConcat extractAll concat e j r t'
const types = new Set(['String', 'UUID', 'Float64', 'Int256', "DateTime64(6, 'UTC')", 'Array(String)'])
/** The literals of the SQL about nothing but columns and paths, whatever is asked. */
const literals = [
  'a:1 OR a:x* OR a:>4 OR a:>99999999999999999 OR a:>x OR a:* OR level:* OR stack:4*',
].flatMap((text) => toSql(queryOf(text)).sql.match(/'(?:[^'\\]|\\.)*'/g) ?? [])
const known = new Set([
  ...words.split(' '),
  ...Object.keys(queryColumns),
  ...literals,
  ...'( ) [ ] , = < > ! - + * 0 1'.split(' '),
])

it('has nothing of a query but names of columns', () => {
  fc.assert(
    fc.property(anyQuery, (query) => {
      const { sql, parameters } = toSql(query)
      const tokens = new Set(sql.match(TOKEN))
      const bound = [...tokens].filter((token) => token.startsWith('{'))
      expect([...tokens].filter((token) => !known.has(token) && !bound.includes(token))).toEqual([])
      const [names, typesOfNames] = [1, 2].map((group) =>
        bound.map((token) => /^\{(q\d+):(.*)\}$/.exec(token)?.[group]),
      )
      expect(names?.toSorted()).toEqual(Object.keys(parameters).toSorted())
      expect(typesOfNames?.filter((type) => !types.has(type ?? ''))).toEqual([])
    }),
    runsOf(500),
  )
})

it('binds a value once', () => {
  expect(toSql(queryOf('service:a OR pathname:a'))).toEqual({
    sql: '(service IN ({q0:String}) OR pathname IN ({q0:String}))',
    parameters: { q0: 'a' },
  })
})

it.each([
  ['exception', 'positionCaseInsensitive', 'xception'],
  ['Timeout', 'positionCaseInsensitive', 'meout'],
  ['zanzibar', 'positionCaseInsensitive', 'zanzibar'],
  ['box', 'positionCaseInsensitive', 'box'],
  ['10.0.9.17', 'position', '9.17'],
  ['жизнь-x1234', 'positionCaseInsensitive', 'x1234'],
])('finds %s by its end from the rarest character on', (text, position, end) => {
  const { sql, parameters } = toSql(queryOf(`"${text}"`))
  expect(sql).toContain(`(${position}(message, {q0:String}) > 0 AND lower(message) LIKE {q1:String})`)
  expect(parameters).toMatchObject({ q0: end, q1: `%${text.toLowerCase()}%` })
})

it('can name every field of an entry', () => {
  const fields = [...entryFields].filter((field) => field !== 'metadata')
  expect(Object.keys(queryColumns).toSorted()).toEqual([...fields, 'id', 'received_at'].toSorted())
})

it.each([
  ['4213', '4213 4213.0 4.213e3 42.130E+2 42130e-1 0.04213e5'],
  ['4213567', '4213567 4213567.00 4.213567e6 421.3567E4 42135.670E+2'],
])('finds %s in each form', (number, forms) => {
  const matches = matcher(queryOf(`a:${number}`))
  expect(forms.split(' ').filter((form) => !matches({ metadata: `{"a":${form}}` }))).toEqual([])
})
