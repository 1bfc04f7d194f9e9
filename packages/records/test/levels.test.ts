import { describe, expect, test } from 'vitest'
import { readLevel, readLevelName } from '../src/index.ts'

describe('the name of a level', () => {
  test.each([
    ['debug', 'trace verbose finest finer fine debug dbg config'],
    ['info', 'info information informational notice'],
    ['success', 'success'],
    ['warn', 'warn warning'],
    ['error', 'err error severe fatal critical crit alert emerg emergency panic dpanic failure'],
    ['log', 'log'],
  ])('of other loggers means %s: %s', (level, names) => {
    const spellings = names
      .split(' ')
      .flatMap((name) => [name, name.toUpperCase(), `${name.charAt(0).toUpperCase()}${name.slice(1)} `])
    expect(spellings.filter((name) => readLevelName(name)?.level !== level)).toEqual([])
  })

  test('is unknown for any other string', () => {
    for (const name of ['', ' ', 'banana', 'errors', '__proto__', 'toString', 'x'.repeat(1e6)])
      expect(readLevelName(name)).toBeUndefined()
  })
})

test('the severities of syslog have levels, and other numbers have none', () => {
  const read = [0, 1, 2, 3, 4, 5, 6, 7].map((number) => readLevel(number, 'syslog')?.level)
  expect(read).toEqual(['error', 'error', 'error', 'error', 'warn', 'info', 'info', 'debug'])
  for (const number of [-1, 8, 3.5, Number.NaN]) expect(readLevel(number, 'syslog')).toBeUndefined()
})
