import { matcher, parseQuery, type QueriedEntry } from '@sluice/query-language'
import { runsOf } from '@sluice/harness'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { completionAt, hasTerm, termOf, toggleTerm, tokensOf } from '../src/query-text.ts'

const matches = (query: string, entry: QueriedEntry): boolean => {
  const parsed = parseQuery(query)
  if (!('query' in parsed)) throw new Error(`${query}: ${parsed.errors[0]?.message}`)
  return matcher(parsed.query)(entry)
}
const entry = { id: '', timestamp: '', received_at: '', level: 'error', message: 'm', service: 'web' }

describe('a filter', () => {
  it('matches the entry whose value it is made of, whatever the value', () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1 })
    fc.assert(
      fc.property(text, text, (name, value) => {
        fc.pre(!name.includes('.'))
        expect(
          matches(termOf(`field.${name}`, value), {
            ...entry,
            metadata: JSON.stringify({ field: { [name]: value } }),
          }),
        ).toBe(true)
      }),
      runsOf(100),
    )
    for (const value of [
      'a b',
      '"',
      '\\',
      '(',
      '*',
      'a*',
      'OR',
      '-x',
      '>=5',
      '1..2',
      '\b\f\u0001\n',
      '\u202e',
    ])
      for (const field of ['service', 'message', 'url'])
        expect(matches(termOf(field, value), { ...entry, [field]: value })).toBe(true)
  })

  it('is added, replaced by its opposite, and removed', () => {
    expect(toggleTerm('', 'service', 'web', false)).toBe('service:web')
    expect(toggleTerm('timeout', 'service', 'a b', false)).toBe('timeout service:"a b"')
    expect(toggleTerm('timeout service:web', 'service', 'web', true)).toBe('timeout -service:web')
    expect(toggleTerm('timeout -service:web', 'service', 'web', true)).toBe('timeout')
    expect(hasTerm('a (service:web)', 'service:web')).toBe(false)
  })

  it('applies to all alternatives', () => {
    expect(toggleTerm('a OR b', 'service', 'web', false)).toBe('(a OR b) service:web')
  })
})

describe('completion', () => {
  it.each([
    ['ser', { field: '', prefix: 'ser', from: 0, end: 3 }],
    ['level:error -ser', { field: '', prefix: 'ser', from: 13, end: 16 }],
    ['service:', { field: 'service', prefix: '', from: 8, end: 8 }],
    ['a (service:we', { field: 'service', prefix: 'we', from: 11, end: 13 }],
    ['-http.status:5', { field: 'http.status', prefix: '5', from: 13, end: 14 }],
    ['service:"a b', { field: 'service', prefix: 'a b', from: 8, end: 12 }],
  ])('of %s', (text, expected) => {
    expect(completionAt(text, text.length)).toEqual(expected)
  })

  it('offers nothing within a string or after an operator', () => {
    expect(completionAt('"some te', 8)).toBeUndefined()
    expect(completionAt('http.status:>=5', 15)).toBeUndefined()
  })
})

it('colours fields, operators and strings', () => {
  const text = '-level:error (service:"a b" OR x) http.status:>=500 a:b:c'
  expect(tokensOf(text).map(({ kind, from, end }) => `${kind} ${text.slice(from, end)}`)).toEqual([
    'operator -',
    'field level:',
    'text error',
    'operator (',
    'field service:',
    'string "a b"',
    'operator OR',
    'text x',
    'operator )',
    'field http.status:',
    'operator >=',
    'text 500',
    'field a:',
    'text b:c',
  ])
})
