import { describe, expect, it } from 'vitest'
import { commonSettings, redisSettings } from '../src/common-settings.ts'
import { readSettings, SettingsError } from '../src/settings.ts'

const schema = {
  NAME: { type: 'string', default: 'unnamed', description: 'A text.' },
  PORT: { type: 'integer', minimum: 0, maximum: 65_535, default: 3_000, description: 'A number.' },
  STRICT: { type: 'boolean', default: false, description: 'A switch.' },
  LEVEL: { type: 'string', enum: ['low', 'high'], default: 'low', description: 'A choice.' },
  PREFIX: { type: 'string', pattern: '^[a-z]{1,4}$', default: 'abc', description: 'A pattern.' },
  OPTIONAL: { type: 'string', description: 'A text that may be absent.' },
} as const

const defaults = { NAME: 'unnamed', PORT: 3_000, STRICT: false, LEVEL: 'low', PREFIX: 'abc' }

describe('readSettings', () => {
  it('returns the defaults for an empty environment, without settings that have no default', () => {
    expect(readSettings(schema, {})).toEqual(defaults)
  })

  it('treats an empty variable as absent', () => {
    const empty = Object.fromEntries(Object.keys(schema).map((name) => [name, '']))
    expect(readSettings(schema, empty)).toEqual(defaults)
  })

  it('converts values to their types', () => {
    const environment = { NAME: '123', PORT: '8080', STRICT: 'true', LEVEL: 'high', OPTIONAL: 'yes' }
    expect(readSettings(schema, environment)).toEqual({
      NAME: '123',
      PORT: 8_080,
      STRICT: true,
      LEVEL: 'high',
      PREFIX: 'abc',
      OPTIONAL: 'yes',
    })
  })

  it.each([
    ['PORT', '-1'],
    ['PORT', '65536'],
    ['PORT', '80.5'],
    ['PORT', '80a'],
    ['PORT', 'eighty'],
    ['PORT', '  '],
    ['PORT', 'Infinity'],
    ['PORT', 'NaN'],
    ['STRICT', 'yes'],
    ['STRICT', '1'],
    ['STRICT', 'TRUE'],
    ['LEVEL', 'medium'],
    ['LEVEL', 'LOW'],
    ['PREFIX', 'toolong'],
    ['PREFIX', 'a b'],
    ['PREFIX', 'ab\n'],
  ])('rejects %s=%j, and names the variable', (name, value) => {
    expect(() => readSettings(schema, { [name]: value })).toThrow(SettingsError)
    expect(() => readSettings(schema, { [name]: value })).toThrow(name)
  })

  it('names every invalid variable, and quotes no value', () => {
    const environment = {
      PORT: 'hunter2',
      STRICT: 'hunter2',
      LEVEL: 'hunter2',
      PREFIX: 'hunter2',
      NAME: 'ok',
    }
    const message = messageOf(() => readSettings(schema, environment))
    for (const name of ['PORT', 'STRICT', 'LEVEL', 'PREFIX']) expect(message).toContain(name)
    expect(message).not.toContain('hunter2')
    expect(message).not.toContain('NAME')
  })
})

describe('the shared settings', () => {
  it('have valid defaults', () => {
    expect(() => readSettings({ ...commonSettings, ...redisSettings }, {})).not.toThrow()
  })

  it.each(['{x}', 'a:b', 'a b', '*', 'a'.repeat(65)])(
    'do not allow the prefix %j, since the prefix becomes a hash tag and part of names',
    (prefix) => {
      expect(() => readSettings(redisSettings, { SLUICE_PREFIX: prefix })).toThrow('SLUICE_PREFIX')
    },
  )

  it.each(['99', 'Infinity', '1e12'])(
    'do not allow a shutdown deadline of %s ms: it is too short, or too long for a timer',
    (deadline) => {
      expect(() => readSettings(commonSettings, { SHUTDOWN_DEADLINE_MS: deadline })).toThrow(
        'SHUTDOWN_DEADLINE_MS',
      )
    },
  )
})

function messageOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof SettingsError) return error.message
  }
  throw new Error('no SettingsError was thrown')
}
