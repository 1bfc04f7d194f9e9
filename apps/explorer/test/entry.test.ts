import { parseJsonExactly } from '@sluice/rows/exact-json'
import { describe, expect, it } from 'vitest'
import { correlationOf, type Entry, fieldOf, isTree, shortName, textOf } from '../src/entry.ts'

const entryOf = (metadata: string): Entry =>
  parseJsonExactly(
    `{"id":"1","timestamp":"","received_at":"","level":"info","message":"m","service":"web","metadata":${metadata}}`,
  ) as Entry

describe('a value', () => {
  it('keeps its digits beyond 2^53, and as JSON too', () => {
    const entry = entryOf('{"big":123456789012345678901234567890,"negative":-9007199254740993,"small":1}')
    expect(['big', 'negative', 'small'].map((field) => textOf(fieldOf(entry, field)))).toEqual([
      '123456789012345678901234567890',
      '-9007199254740993',
      '1',
    ])
    expect(JSON.stringify(entry.metadata)).toBe(
      '{"big":123456789012345678901234567890,"negative":-9007199254740993,"small":1}',
    )
    expect(isTree(fieldOf(entry, 'big'))).toBe(false)
  })

  it('is found by its path, also if a name has dots', () => {
    const entry = entryOf('{"a":{"b.c":{"d":7}},"http.status":500,"service":"inner","list":[1]}')
    expect(fieldOf(entry, 'a.b.c.d')).toBe(7)
    expect(fieldOf(entry, 'http.status')).toBe(500)
    expect(fieldOf(entry, 'service')).toBe('web')
    expect(fieldOf(entry, 'metadata.service')).toBe('inner')
    expect(fieldOf(entry, 'absent.path')).toBeUndefined()
    expect(fieldOf(entry, 'toString')).toBeUndefined()
  })

  it('never comes from a prototype, and never changes one', () => {
    const entry = entryOf('{"__proto__":{"polluted":true}}')
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
    expect(fieldOf(entry, '__proto__.polluted')).toBe(true)
  })
})

it('leaves out the word metadata where the language does not need it', () => {
  expect(['metadata.user.id', 'metadata.level', 'service'].map(shortName)).toEqual([
    'user.id',
    'metadata.level',
    'service',
  ])
})

it('finds the id that entries of a request share', () => {
  expect(correlationOf(entryOf('{"request_id":"r","trace_id":"t"}'))).toEqual(['trace_id', 't'])
  expect(correlationOf(entryOf('{"user":1}'))).toBeUndefined()
})
