import { expect, it } from 'vitest'
import { readLevel } from '../src/levels.ts'

const names = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  35: 'success',
  40: 'warn',
  45: 'audit',
  50: 'error',
  60: 'fatal',
  25: 'http',
}

it.each([
  [10, 'debug', false],
  [20, 'debug', true],
  [30, 'info', true],
  [40, 'warn', true],
  [50, 'error', true],
  [60, 'error', false],
])('reads the number %d of pino as %s', (number, level, isExact) => {
  expect(readLevel(number, names)).toEqual({ level, isExact })
})

it.each([
  [35, 'success', true],
  [45, 'info', false],
])('reads the custom level %d by its name', (number, level, isExact) => {
  expect(readLevel(number, names)).toEqual({ level, isExact })
})

it.each([
  [25, 'debug'],
  [29.5, 'debug'],
  [31, 'info'],
  [49, 'warn'],
  [70, 'error'],
  [-1, 'debug'],
])('reads %d, whose name is unknown, by its rank among the levels of pino', (number, level) => {
  expect(readLevel(number, names)).toEqual({ level, isExact: false })
})

it.each([
  ['info', 'info', true],
  ['WARNING', 'warn', true],
  [' Error ', 'error', true],
  ['FATAL', 'error', false],
  ['log', 'log', true],
])('reads the name %j', (name, level, isExact) => {
  expect(readLevel(name, names)).toEqual({ level, isExact })
})

it.each([['loud'], [''], [null], [true], [{}], [undefined]])('does not read %j', (value) => {
  expect(readLevel(value, names)).toBeUndefined()
})
