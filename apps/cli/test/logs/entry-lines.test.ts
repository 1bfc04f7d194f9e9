import { keepText, parseJsonExactly } from '@sluice/rows'
import { expect, test } from 'vitest'
import { jsonLine, textLines } from '../../src/logs/entry-lines.ts'
import type { Entry } from '../../src/logs/query-client.ts'
import { painter } from '../../src/terminal.ts'

const entry = (given: object = {}): Entry => ({
  id: '01a208ac-c196-7000-b17f-dd01c9e178b2',
  timestamp: '2026-07-01T10:00:00.123456Z',
  received_at: '2026-07-01T10:00:01.000Z',
  level: 'error',
  message: 'it broke',
  ...given,
})

const plain = {
  paint: painter(false),
  zone: 'UTC',
  highlights: [],
  fields: undefined,
  charactersMax: Infinity,
  stackLinesMax: 0,
}

test('an entry is one line, with its time in the zone', () => {
  const given = entry({ service: 'web', metadata: { a: 1 }, environment: 'production' })
  expect(textLines(given, plain)).toEqual(['2026-07-01T10:00:00.123Z ERROR   web it broke {"a":1}'])
  const [line] = textLines(given, { ...plain, zone: 'Europe/Berlin' })
  expect(line).toMatch(/^2026-07-01T12:00:00\.123\+02:00 ERROR/)
})

test('what controls a terminal is escaped in every part of a line', () => {
  const given = entry({
    level: 'x\u001B[2J',
    service: 'web\u009B',
    message: 'it\r\nbroke',
    stack: 'a\u001B[31m',
    metadata: { '\u009B': '\u202E' },
  })
  const lines = textLines(given, { ...plain, stackLinesMax: Infinity })
  expect(lines).toEqual([
    String.raw`2026-07-01T10:00:00.123Z X\E[2J  web\u009b it\r\nbroke {"\u009b":"\u202e"}`,
    String.raw`    a\e[31m`,
  ])
  const [fields] = textLines(given, { ...plain, fields: ['message', 'metadata'] })
  expect(fields).toBe('it\\r\\nbroke\t{"\\u009b":"\\u202e"}')
  // oxlint-disable-next-line no-control-regex -- none is left
  expect(jsonLine(given, undefined)).not.toMatch(/[\u0000-\u001F\u007F-\u009F\u202E]/)
})

test('levels have colours, and searched texts stand out, in any case', () => {
  const style = { ...plain, paint: painter(true), highlights: ['broke', 'a.b'] }
  const [line] = textLines(entry({ message: 'it BROKE, axb a.b' }), style)
  expect(line).toContain('\u001B[31mERROR')
  expect(line).toContain('it \u001B[7mBROKE\u001B[27m, axb \u001B[7ma.b\u001B[27m')
})

test('a long message is shortened, and says by how much', () => {
  const given = entry({ message: 'x'.repeat(1_600), metadata: { long: 'y'.repeat(100) } })
  const [line] = textLines(given, { ...plain, charactersMax: 20 })
  expect(line).toContain(`${'x'.repeat(20)} … (1,580 characters more: --full)`)
  expect(line).toContain('{"long":"yyyyyyyyyyy … (91 characters more: --full)')
  expect(textLines(given, plain)[0]).toContain('x'.repeat(1_600))
})

test('a stack is printed as lines, the first ones, or all', () => {
  const given = entry({ stack: 'Error: x\n    at a\r\n    at b\n    at c\n' })
  const lines = (stackLinesMax: number) => textLines(given, { ...plain, stackLinesMax }).slice(1)
  expect(lines(0)).toEqual([])
  expect(lines(2)).toEqual(['    Error: x', '        at a', '    … 2 lines more: --stack'])
  // The line about one more line would take its place.
  expect(lines(3)).toHaveLength(4)
  expect(lines(Infinity)).toEqual(['    Error: x', '        at a', '        at b', '        at c'])
})

test.each([
  ['service', ''],
  ['level', '"error"'],
  ['metadata.user.id', '12345678901234567890'],
  ['user.id', '12345678901234567890'],
  ['http.status', '500'],
  ['a.b.c', '"deep"'],
  ['none', 'null'],
  ['list', '[1]'],
  ['user.name.x', ''],
  ['constructor', ''],
])('the field %s of an entry is %s', (name, value) => {
  const metadata = parseJsonExactly(
    '{"user":{"id":12345678901234567890,"name":"x"},"http.status":500,"a":{"x":1,"b.c":"deep"},"none":null,"list":[1]}',
  )
  expect(jsonLine(entry({ metadata }), [name])).toBe(value === '' ? '{}' : `{"${name}":${value}}`)
})

test('fields are separated by tabs, and absent ones are empty', () => {
  const fields = ['timestamp', 'service', 'user.id', 'message']
  const [line] = textLines(entry({ metadata: { user: { id: 7 } } }), { ...plain, fields })
  expect(line).toBe('2026-07-01T10:00:00.123Z\t\t7\tit broke')
})

test('JSON has the entry as the query API answers it, with numbers as they were sent', () => {
  const numbers = '[123456789012345678901234567890,1.50,1e3,-0,1E400,0.1,7]'
  const json = `{"id":"1","level":"info","message":"","metadata":{"a":${numbers}}}`
  expect(jsonLine(parseJsonExactly(json, keepText) as Entry, undefined)).toBe(json)
})
