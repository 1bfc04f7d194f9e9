import { expect, it } from 'vitest'
import { limits } from '@sluice/schema'
import { scanEntry } from './support/entries.ts'

const entry = (fields: object = {}): object => ({ level: 'info', message: 'm', ...fields })
const errorsOf = (value: unknown): readonly { path: string; code: string; message: string }[] =>
  scanEntry(typeof value === 'string' ? value : JSON.stringify(value)).errors
const codes = (value: unknown): string[] => errorsOf(value).map(({ path, code }) => `${path} ${code}`)

/** An object with this number of names. */
const names = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, i) => [i, 1]))

/** A character of two UTF-16 code units. */
const ASTRAL = '😀'

const optional = ['stack', 'url', 'pathname', 'service', 'timestamp', 'environment', 'source']

it.each([
  ['level', ['log', 'debug', 'info', 'success', 'warn', 'error'], ['', 'INFO', 'info ', 'infо']],
  ['environment', ['development', 'staging', 'production'], ['', 'prod', 'Production']],
  ['source', ['server', 'client', 'edge'], ['', 'Server', 'browser']],
])('a %s has these values, and no other', (field, allowed, others) => {
  for (const value of allowed) expect(codes(entry({ [field]: value }))).toEqual([])
  for (const value of others) expect(codes(entry({ [field]: value }))).toEqual([`/${field} not_allowed`])
  const [error] = errorsOf(entry({ [field]: others[1] }))
  expect(error?.message).toBe(`must be one of ${allowed.join(', ')}`)
})

// In code points, not UTF-16 code units.
it.each([
  ['message', 65_536],
  ['stack', 65_536],
  ['url', 8_192],
  ['pathname', 8_192],
  ['service', 256],
])('limits the length of a %s', (field, max) => {
  expect(codes(entry({ [field]: ASTRAL.repeat(max) }))).toEqual([])
  expect(codes(entry({ [field]: `${ASTRAL.repeat(max - 1)}aa` }))).toEqual([`/${field} too_long`])
})

it('limits the number of names in metadata', () => {
  expect(codes(entry({ metadata: names(limits.metadataNamesMax) }))).toEqual([])
  expect(codes(entry({ metadata: names(limits.metadataNamesMax + 1) }))).toEqual(['/metadata too_many_names'])
})

it.each<[field: string, values: readonly unknown[]]>([
  ['level', [null, true, 1, {}, ['info'], { toString: 'info' }]],
  ['message', [null, false, 0, ['m'], {}]],
  ...optional.map((field): [string, readonly unknown[]] => [field, [0, true, [], {}]]),
  ['metadata', ['{}', 1, true, []]],
])('has no %s of another type', (field, values) => {
  for (const value of values) expect(codes(entry({ [field]: value }))).toEqual([`/${field} wrong_type`])
})

it('rejects other values than objects as an entry', () => {
  for (const value of [null, 1, '"text"', true, [], [entry()], '1e400'])
    expect(codes(value)).toEqual([' wrong_type'])
})

it('accepts unknown fields of any type', () => {
  expect(codes(entry({ message: '', a: 1, b: null, c: [], d: { e: {} }, f: true, service: null }))).toEqual(
    [],
  )
})

it('names each missing field', () => {
  expect(errorsOf('{"__proto__":{"level":"info","message":"m"}}')).toEqual([
    { index: 0, path: '', code: 'missing', message: 'level is required' },
    { index: 0, path: '', code: 'missing', message: 'message is required' },
  ])
})

it(`reports every invalid field once, up to ${limits.errorsPerEntryMax}, and never quotes the value`, () => {
  const wrong = entry({ level: 1, source: 'hunter2', service: 'hunter2'.repeat(100) })
  const found = ['/level wrong_type', '/service too_long', '/source not_allowed']
  expect(codes(wrong).toSorted()).toEqual(found)
  expect(JSON.stringify(errorsOf(wrong))).not.toContain('hunter2')
  const all = Object.fromEntries(['level', 'message', 'metadata', ...optional].map((name) => [name, 1]))
  expect(errorsOf(all)).toHaveLength(limits.errorsPerEntryMax)
})
