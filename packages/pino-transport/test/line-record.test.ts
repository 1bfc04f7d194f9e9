import { expect, it } from 'vitest'
import { parseLine } from '../src/line-record.ts'

it('parses an object', () => {
  expect(parseLine('{"a":[1,"x",null],"b":{"c":true}}')).toEqual({ a: [1, 'x', null], b: { c: true } })
})

it.each([['hello'], ['{"a":1'], [' {"a":1}'], ['[1]'], ['1'], ['null'], ['"a"'], ['{"a":1}}']])(
  'does not parse %j',
  (line) => {
    expect(parseLine(line)).toBeUndefined()
  },
)

it('keeps the digits of large integers, as texts', () => {
  const line = '{"id":12345678901234567890,"n":-98765432109876543210,"list":[11111111111111111111]}'
  expect(parseLine(line)).toEqual({
    id: '12345678901234567890',
    n: '-98765432109876543210',
    list: ['11111111111111111111'],
  })
})

it('leaves numbers that are exact, fractions, exponents and digits in texts as they are', () => {
  const line = String.raw`{"max":9007199254740991,"f":0.1234567890123456789,"e":1234567890123456e10,"t":"1234567890123456789","q":"\" 12345678901234567890"}`
  expect(parseLine(line)).toEqual({
    max: 9_007_199_254_740_991,
    f: 0.123_456_789_012_345_68,
    e: 1_234_567_890_123_456e10,
    t: '1234567890123456789',
    q: '" 12345678901234567890',
  })
})

it('does not search a huge line for integers', () => {
  const line = `{"text":"${'x'.repeat(300_000)}","id":12345678901234567890}`
  expect(parseLine(line)?.['id']).toBe(Number('12345678901234567890'))
})
