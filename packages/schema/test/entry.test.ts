import { describe, expect, it } from 'vitest'
import { EntryValidator, levels } from '../src/entry.ts'
import { limits } from '../src/limits.ts'

const validator = new EntryValidator()
const entry = (fields: object = {}): object => ({ level: 'info', message: 'm', ...fields })
const codes = (value: unknown): string[] =>
  validator.explain(value).map(({ path, code }) => `${path} ${code}`)

/** An object with so many names. */
const names = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, i) => [i, 1]))

/** Two UTF-16 code units, one character. */
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
  it.each(['log', 'debug', 'info', 'success', 'warn', 'error'])('takes the level %s', (level) => {
    expect(validator.isEntry(entry({ level }))).toBe(true)
  })

  it('has no other level', () => {
    expect(levels).toHaveLength(6)
  })

  it.each(['', 'INFO', 'Info', ' info', 'info ', 'warning', 'fatal', 'trace', 'infо'])(
    'refuses the level "%s"',
    (level) => {
      expect(codes(entry({ level }))).toEqual(['/level not_allowed'])
    },
  )

  it.each(['development', 'staging', 'production'])('takes the environment %s', (environment) => {
    expect(validator.isEntry(entry({ environment }))).toBe(true)
  })

  it.each(['', 'prod', 'Production', 'test'])('refuses the environment "%s"', (environment) => {
    expect(codes(entry({ environment }))).toEqual(['/environment not_allowed'])
  })

  it.each(['server', 'client', 'edge'])('takes the source %s', (source) => {
    expect(validator.isEntry(entry({ source }))).toBe(true)
  })

  it.each(['', 'Server', 'browser'])('refuses the source "%s"', (source) => {
    expect(codes(entry({ source }))).toEqual(['/source not_allowed'])
  })

  it('says which values are allowed, and does not offer null', () => {
    const [error] = validator.explain(entry({ source: 'browser' }))
    expect(error?.message).toBe('must be one of server, client, edge')
  })
})

describe('lengths', () => {
  it.each(textLimits)('takes a %s of %i characters', (field, max) => {
    expect(validator.isEntry(entry({ [field]: 'a'.repeat(max) }))).toBe(true)
  })

  it.each(textLimits)('refuses a %s of one character more than %i', (field, max) => {
    expect(codes(entry({ [field]: 'a'.repeat(max + 1) }))).toEqual([`/${field} too_long`])
  })

  it.each(textLimits)('counts code points, not UTF-16 units, in a %s', (field, max) => {
    expect(validator.isEntry(entry({ [field]: ASTRAL.repeat(max) }))).toBe(true)
    expect(codes(entry({ [field]: `${ASTRAL.repeat(max)}a` }))).toEqual([`/${field} too_long`])
    expect(codes(entry({ [field]: `${ASTRAL.repeat(max - 1)}aa` }))).toEqual([`/${field} too_long`])
  })

  it('takes an empty message', () => {
    expect(validator.isEntry(entry({ message: '' }))).toBe(true)
  })

  it('counts the names of metadata', () => {
    expect(validator.isEntry(entry({ metadata: names(limits.metadataNamesMax) }))).toBe(true)
    expect(codes(entry({ metadata: names(limits.metadataNamesMax + 1) }))).toEqual([
      '/metadata too_many_names',
    ])
  })
})

describe('types', () => {
  it.each<unknown>([null, true, 1, [], {}, ['info'], { toString: 'info' }])(
    'converts no %j to a level',
    (level) => {
      expect(codes(entry({ level }))).toEqual(['/level wrong_type'])
    },
  )

  it.each<unknown>([null, false, 0, 1.5, [], ['m'], {}])('converts no %j to a message', (message) => {
    expect(codes(entry({ message }))).toEqual(['/message wrong_type'])
  })

  it.each(optionalTexts.flatMap((field) => [0, true, [], {}].map((value) => [field, value] as const)))(
    'converts for %s no %j',
    (field, value) => {
      expect(codes(entry({ [field]: value }))).toEqual([`/${field} wrong_type`])
    },
  )

  it.each<unknown>(['{}', 1, true, [], [{}]])('takes no %j for metadata', (metadata) => {
    expect(codes(entry({ metadata }))).toEqual(['/metadata wrong_type'])
  })

  it.each([...optionalTexts, 'metadata'])('takes null for the optional %s', (field) => {
    expect(validator.isEntry(entry({ [field]: null }))).toBe(true)
  })

  it.each<unknown>([null, 1, 'text', true, [], [entry()]])('takes no %j for an entry', (value) => {
    expect(codes(value)).toEqual([' wrong_type'])
  })

  it('takes unknown fields of any type', () => {
    expect(validator.isEntry(entry({ a: 1, b: null, c: [], d: { e: {} }, f: true }))).toBe(true)
  })

  it('changes nothing of what it checks', () => {
    const value = entry({ level: 'info', extra: '1', metadata: { n: '1' }, service: null })
    const before = structuredClone(value)
    validator.isEntry(value)
    validator.explain(value)
    expect(value).toEqual(before)
  })
})

describe('what is wrong', () => {
  it('names each field that is missing', () => {
    expect(validator.explain({})).toEqual([
      { path: '', code: 'missing', message: 'level is required' },
      { path: '', code: 'missing', message: 'message is required' },
    ])
  })

  it('takes inherited fields for missing', () => {
    const value: unknown = JSON.parse('{"__proto__":{"level":"info","message":"m"}}')
    expect(codes(value)).toEqual([' missing', ' missing'])
  })

  it('reports every field at fault, and each once', () => {
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

  it('never repeats the value', () => {
    const wrong = entry({ level: 'hunter2', service: 'hunter2'.repeat(100) })
    expect(JSON.stringify(validator.explain(wrong))).not.toContain('hunter2')
  })
})
