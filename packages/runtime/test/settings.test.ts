import { describe, expect, it } from 'vitest'
import { commonSettings, redisSettings } from '../src/common-settings.ts'
import { readSettings, SettingsError } from '../src/settings.ts'

const schema = {
  NAME: { type: 'string', default: 'unnamed', description: 'A string.' },
  PORT: { type: 'integer', minimum: 0, maximum: 65_535, default: 3_000, description: 'A number.' },
  STRICT: { type: 'boolean', default: false, description: 'A switch.' },
  LEVEL: { type: 'string', enum: ['low', 'high'], default: 'low', description: 'A choice.' },
  OPTIONAL: { type: 'string', description: 'A string that may be absent.' },
} as const

const defaults = { NAME: 'unnamed', PORT: 3_000, STRICT: false, LEVEL: 'low' }

describe('readSettings', () => {
  it('returns the defaults for absent and empty variables, without settings that have no default', () => {
    expect(readSettings(schema, {})).toEqual(defaults)
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
      OPTIONAL: 'yes',
    })
  })

  it.each(['65536', '80.5', '80a', '  ', 'Infinity'])(
    'rejects the integer %j, and names the variable',
    (value) => {
      expect(() => readSettings(schema, { PORT: value })).toThrow(SettingsError)
      expect(() => readSettings(schema, { PORT: value })).toThrow('PORT')
    },
  )

  it('names every invalid variable with the reason, and quotes no value', () => {
    const environment = { PORT: 'hunter2', STRICT: 'hunter2', LEVEL: 'hunter2', NAME: 'ok' }
    expect(() => readSettings(schema, environment)).toThrow(
      new SettingsError(
        'invalid settings: PORT must be integer; STRICT must be boolean; LEVEL must be one of low, high',
      ),
    )
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
    (SHUTDOWN_DEADLINE_MS) => {
      expect(() => readSettings(commonSettings, { SHUTDOWN_DEADLINE_MS })).toThrow('SHUTDOWN_DEADLINE_MS')
    },
  )
})
