import { describe, expect, it } from 'vitest'
import { limits } from '@sluice/schema'
import { EntryValidator } from '../src/entry-validator.ts'
import { parseJsonExactly } from '../src/json/parse.ts'

const validator = new EntryValidator()
const entry = (fields: object = {}): object => ({ level: 'info', message: 'm', ...fields })
const codes = (value: unknown): string[] =>
  validator.explain(value).map(({ path, code }) => `${path} ${code}`)

/** An object with this number of names. */
const names = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, i) => [i, 1]))

/** A character of two UTF-16 code units. */
const ASTRAL = '😀'

const textLimits: readonly (readonly [field: string, charactersMax: number])[] = [
  ['message', 65_536],
  ['stack', 65_536],
  ['url', 8_192],
  ['pathname', 8_192],
  ['service', 256],
]
const optionalTexts = ['stack', 'url', 'pathname', 'service', 'timestamp', 'environment', 'source']

describe('levels, environments and sources', () => {
  it.each([
    [
      'level',
      ['log', 'debug', 'info', 'success', 'warn', 'error'],
      ['', 'INFO', ' info', 'info ', 'fatal', 'infо'],
    ],
    ['environment', ['development', 'staging', 'production'], ['', 'prod', 'Production']],
    ['source', ['server', 'client', 'edge'], ['', 'Server', 'browser']],
  ])('has the values of a %s, and no other', (field, allowed, others) => {
    for (const value of allowed) expect(validator.isEntry(entry({ [field]: value }))).toBe(true)
    for (const value of others) expect(codes(entry({ [field]: value }))).toEqual([`/${field} not_allowed`])
    const [error] = validator.explain(entry({ [field]: others[1] }))
    expect(error?.message).toBe(`must be one of ${allowed.join(', ')}`)
  })
})

describe('lengths', () => {
  it.each(textLimits)('counts code points in a %s, not UTF-16 code units', (field, max) => {
    expect(validator.isEntry(entry({ [field]: ASTRAL.repeat(max) }))).toBe(true)
    expect(codes(entry({ [field]: `${ASTRAL.repeat(max)}a` }))).toEqual([`/${field} too_long`])
    expect(codes(entry({ [field]: `${ASTRAL.repeat(max - 1)}aa` }))).toEqual([`/${field} too_long`])
  })

  it('accepts an empty message', () => {
    expect(validator.isEntry(entry({ message: '' }))).toBe(true)
  })

  it('limits the number of names in metadata', () => {
    expect(validator.isEntry(entry({ metadata: names(limits.metadataNamesMax) }))).toBe(true)
    expect(codes(entry({ metadata: names(limits.metadataNamesMax + 1) }))).toEqual([
      '/metadata too_many_names',
    ])
  })
})

describe('types', () => {
  it.each<[field: string, values: readonly unknown[]]>([
    ['level', [null, true, 1, [], {}, ['info'], { toString: 'info' }]],
    ['message', [null, false, 0, 1.5, [], ['m'], {}]],
    ...optionalTexts.map((field): [string, readonly unknown[]] => [field, [0, true, [], {}]]),
    ['metadata', ['{}', 1, true, [], [{}]]],
  ])('has no %s of another type', (field, values) => {
    for (const value of values) expect(codes(entry({ [field]: value }))).toEqual([`/${field} wrong_type`])
  })

  it.each([...optionalTexts, 'metadata'])('accepts null for the optional %s', (field) => {
    expect(validator.isEntry(entry({ [field]: null }))).toBe(true)
  })

  it.each<unknown>([null, 1, 'text', true, [], [entry()]])('rejects %j as an entry', (value) => {
    expect(codes(value)).toEqual([' wrong_type'])
  })

  it('rejects exactly parsed numbers where an object is required', () => {
    const value = parseJsonExactly('{"level":"info","message":"m","metadata":1e400}')
    expect(validator.isEntry(value)).toBe(false)
    expect(codes(value)).toEqual(['/metadata wrong_type'])
    expect(codes(parseJsonExactly('1e400'))).toEqual([' wrong_type'])
  })

  it('accepts unknown fields of any type', () => {
    expect(validator.isEntry(entry({ a: 1, b: null, c: [], d: { e: {} }, f: true }))).toBe(true)
  })

  it('does not change the value', () => {
    const value = entry({ level: 'info', extra: '1', metadata: { n: '1' }, service: null })
    const before = structuredClone(value)
    validator.isEntry(value)
    validator.explain(value)
    expect(value).toEqual(before)
  })
})

describe('explain', () => {
  it('names each missing field', () => {
    expect(validator.explain({})).toEqual([
      { path: '', code: 'missing', message: 'level is required' },
      { path: '', code: 'missing', message: 'message is required' },
    ])
  })

  it('treats inherited fields as missing', () => {
    const value: unknown = JSON.parse('{"__proto__":{"level":"info","message":"m"}}')
    expect(codes(value)).toEqual([' missing', ' missing'])
  })

  it('reports every invalid field once', () => {
    const wrong = entry({ level: 1, message: null, environment: 5, source: 'x', url: 1 })
    expect(codes(wrong).toSorted()).toEqual([
      '/environment wrong_type',
      '/level wrong_type',
      '/message wrong_type',
      '/source not_allowed',
      '/url wrong_type',
    ])
  })

  it(`reports at most ${limits.errorsPerEntryMax} errors`, () => {
    const wrong = Object.fromEntries(
      ['level', 'message', 'metadata', ...optionalTexts].map((name) => [name, 1]),
    )
    expect(validator.explain(wrong)).toHaveLength(limits.errorsPerEntryMax)
  })

  it('never quotes the value', () => {
    const wrong = entry({ level: 'hunter2', service: 'hunter2'.repeat(100) })
    expect(JSON.stringify(validator.explain(wrong))).not.toContain('hunter2')
  })
})
