import { expect, it } from 'vitest'
import { commonSettings, redisSettings } from '../src/common-settings.ts'
import { readSettings, SettingsError } from '../src/settings.ts'

const schema = {
  NAME: { type: 'string', default: 'unnamed', description: 'A string.' },
  PORT: { type: 'integer', minimum: 0, maximum: 65_535, default: 3_000, description: 'A number.' },
  STRICT: { type: 'boolean', default: false, description: 'A switch.' },
  LEVEL: { type: 'string', enum: ['low', 'high'], default: 'low', description: 'A choice.' },
  OPTIONAL: { type: 'string', description: 'A string that may be absent.' },
} as const

it('returns the defaults for absent and empty variables, without settings that have no default', () => {
  const defaults = { NAME: 'unnamed', PORT: 3_000, STRICT: false, LEVEL: 'low' }
  expect(readSettings(schema, {})).toEqual(defaults)
  const empty = Object.fromEntries(Object.keys(schema).map((name) => [name, '']))
  expect(readSettings(schema, empty)).toEqual(defaults)
})

it('converts values to their types', () => {
  const environment = { NAME: '123', PORT: '8080', STRICT: 'true', LEVEL: 'high', OPTIONAL: 'yes' }
  const converted = { ...environment, PORT: 8_080, STRICT: true }
  expect(readSettings(schema, environment)).toEqual(converted)
})

it('names every invalid variable with the reason, and quotes no value', () => {
  const environment = { PORT: 'hunter2', STRICT: 'hunter2', LEVEL: 'hunter2', NAME: 'ok' }
  const reasons = 'PORT must be integer; STRICT must be boolean; LEVEL must be one of low, high'
  expect(() => readSettings(schema, environment)).toThrow(new SettingsError(`invalid settings: ${reasons}`))
})

it.each([
  ['PORT', schema, ['65536', '80.5', '80a', '  ', 'Infinity']],
  // It becomes a hash tag and part of names.
  ['SLUICE_PREFIX', redisSettings, ['{x}', 'a:b', 'a b', '*', 'a'.repeat(65)]],
  // Too short, or too long for a timer.
  ['SHUTDOWN_DEADLINE_MS', commonSettings, ['99', 'Infinity', '1e12']],
])('%s does not allow some values', (name, settings, values) => {
  expect(() => readSettings(settings, {})).not.toThrow()
  for (const value of values) expect(() => readSettings(settings, { [name]: value })).toThrow(name)
})
