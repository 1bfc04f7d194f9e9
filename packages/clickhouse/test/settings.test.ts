import { readSettings, SettingsError } from '@sluice/runtime'
import { expect, it } from 'vitest'
import { clickhouseSettings } from '../src/settings.ts'

it('are valid by default', () => {
  expect(() => readSettings(clickhouseSettings, {})).not.toThrow()
})

it.each(['x; DROP DATABASE y', 'a-b', '1a', 'a.b', '`a`', 'a'.repeat(65)])(
  'do not allow the database name %j, since the name becomes part of SQL',
  (name) => {
    expect(() => readSettings(clickhouseSettings, { CLICKHOUSE_DATABASE: name })).toThrow(
      'CLICKHOUSE_DATABASE',
    )
  },
)

it('are rejected without quoting the password', () => {
  const environment = { CLICKHOUSE_PASSWORD: 'hunter2', CLICKHOUSE_DATABASE: '!' }
  let message = ''
  try {
    readSettings(clickhouseSettings, environment)
  } catch (error) {
    if (error instanceof SettingsError) message = error.message
  }
  expect(message).toContain('CLICKHOUSE_DATABASE')
  expect(message).not.toContain('hunter2')
})
