import { describe, expect, it } from 'vitest'
import { levels, limits } from '@sluice/schema'
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
  it.each(['log', 'debug', 'info', 'success', 'warn', 'error'])('accepts the level %s', (level) => {
    expect(validator.isEntry(entry({ level }))).toBe(true)
  })

  it('allows no other level', () => {
    expect(levels).toHaveLength(6)
  })

  it.each(['', 'INFO', 'Info', ' info', 'info ', 'warning', 'fatal', 'trace', 'infо'])(
    'rejects the level "%s"',
    (level) => {
      expect(codes(entry({ level }))).toEqual(['/level not_allowed'])
    },
  )

  it.each(['development', 'staging', 'production'])('accepts the environment %s', (environment) => {
    expect(validator.isEntry(entry({ environment }))).toBe(true)
  })

  it.each(['', 'prod', 'Production', 'test'])('rejects the environment "%s"', (environment) => {
    expect(codes(entry({ environment }))).toEqual(['/environment not_allowed'])
  })

  it.each(['server', 'client', 'edge'])('accepts the source %s', (source) => {
    expect(validator.isEntry(entry({ source }))).toBe(true)
  })

  it.each(['', 'Server', 'browser'])('rejects the source "%s"', (source) => {
    expect(codes(entry({ source }))).toEqual(['/source not_allowed'])
  })

  it('lists the allowed values without null', () => {
    const [error] = validator.explain(entry({ source: 'browser' }))
    expect(error?.message).toBe('must be one of server, client, edge')
  })
})

describe('lengths', () => {
  it.each(textLimits)('accepts a %s of %i characters', (field, max) => {
    expect(validator.isEntry(entry({ [field]: 'a'.repeat(max) }))).toBe(true)
  })

  it.each(textLimits)('rejects a %s of one character more than %i', (field, max) => {
    expect(codes(entry({ [field]: 'a'.repeat(max + 1) }))).toEqual([`/${field} too_long`])
  })

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
  it.each<unknown>([null, true, 1, [], {}, ['info'], { toString: 'info' }])(
    'rejects %j as a level',
    (level) => {
      expect(codes(entry({ level }))).toEqual(['/level wrong_type'])
    },
  )

  it.each<unknown>([null, false, 0, 1.5, [], ['m'], {}])('rejects %j as a message', (message) => {
    expect(codes(entry({ message }))).toEqual(['/message wrong_type'])
  })

  it.each(optionalTexts.flatMap((field) => [0, true, [], {}].map((value) => [field, value] as const)))(
    'rejects for %s the value %j',
    (field, value) => {
      expect(codes(entry({ [field]: value }))).toEqual([`/${field} wrong_type`])
    },
  )

  it.each<unknown>(['{}', 1, true, [], [{}]])('rejects %j as metadata', (metadata) => {
    expect(codes(entry({ metadata }))).toEqual(['/metadata wrong_type'])
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
