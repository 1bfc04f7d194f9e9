import { describe, expect, it } from 'vitest'
import {
  clickhouseSettings,
  commonSettings,
  readSettings,
  redisSettings,
  SettingsError,
} from '../src/settings.ts'

const schema = {
  NAME: { type: 'string', default: 'nobody', description: 'A text.' },
  PORT: { type: 'integer', minimum: 0, maximum: 65_535, default: 3_000, description: 'A number.' },
  STRICT: { type: 'boolean', default: false, description: 'A switch.' },
  LEVEL: { type: 'string', enum: ['low', 'high'], default: 'low', description: 'A choice.' },
  PREFIX: { type: 'string', pattern: '^[a-z]{1,4}$', default: 'abc', description: 'A pattern.' },
  OPTIONAL: { type: 'string', description: 'A text that may be absent.' },
} as const

const defaults = { NAME: 'nobody', PORT: 3_000, STRICT: false, LEVEL: 'low', PREFIX: 'abc' }

describe('readSettings', () => {
  it('takes the defaults for an empty environment, and leaves out what has none', () => {
    expect(readSettings(schema, {})).toEqual(defaults)
  })

  it('takes an empty variable for an absent one', () => {
    const empty = Object.fromEntries(Object.keys(schema).map((name) => [name, '']))
    expect(readSettings(schema, empty)).toEqual(defaults)
  })

  it('converts the texts to their types', () => {
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

  it('ignores variables that it was not asked for', () => {
    expect(readSettings(schema, { PATH: '/bin', port: '1', __proto__: 'x' })).toEqual(defaults)
  })

  it('takes numbers at their bounds', () => {
    expect(readSettings(schema, { PORT: '0' }).PORT).toBe(0)
    expect(readSettings(schema, { PORT: '65535' }).PORT).toBe(65_535)
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
  ])('refuses %s=%j, and names the variable', (name, value) => {
    expect(() => readSettings(schema, { [name]: value })).toThrow(SettingsError)
    expect(() => readSettings(schema, { [name]: value })).toThrow(name)
  })

  it('names every variable at fault, and no value', () => {
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

describe('the settings that processes share', () => {
  it('are valid by their defaults', () => {
    expect(() =>
      readSettings({ ...commonSettings, ...redisSettings, ...clickhouseSettings }, {}),
    ).not.toThrow()
  })

  it.each(['x; DROP DATABASE y', 'a-b', '1a', 'a.b', '`a`', 'a'.repeat(65)])(
    'take no database named %j, since its name goes into SQL',
    (name) => {
      expect(() => readSettings(clickhouseSettings, { CLICKHOUSE_DATABASE: name })).toThrow(
        'CLICKHOUSE_DATABASE',
      )
    },
  )

  it.each(['{x}', 'a:b', 'a b', '*', 'a'.repeat(65)])(
    'take no prefix %j, since it becomes a hash tag and part of names',
    (prefix) => {
      expect(() => readSettings(redisSettings, { SLUICE_PREFIX: prefix })).toThrow('SLUICE_PREFIX')
    },
  )

  it.each(['99', 'Infinity', '1e12'])(
    'take no shutdown deadline of %s ms, which no timer keeps',
    (deadline) => {
      expect(() => readSettings(commonSettings, { SHUTDOWN_DEADLINE_MS: deadline })).toThrow(
        'SHUTDOWN_DEADLINE_MS',
      )
    },
  )

  it('do not show a password in their messages', () => {
    const environment = { CLICKHOUSE_PASSWORD: 'hunter2', CLICKHOUSE_DATABASE: '!' }
    expect(messageOf(() => readSettings(clickhouseSettings, environment))).not.toContain('hunter2')
  })
})

function messageOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof SettingsError) return error.message
  }
  throw new Error('no SettingsError was thrown')
}
