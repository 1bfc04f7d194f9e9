import { limits } from '@sluice/schema'
import { describe, expect, test } from 'vitest'
import { recordLimits } from '../../src/lines/record-assembler.ts'
import { entriesOf, recordsOf } from './support.ts'

const time = '2026-11-20T10:00:00Z'
const prefix = '2026-11-20 10:00:00 ERROR'
const head = { timestamp: time, level: 'error' }

const info = (message: string) => ({ level: 'info', message })

describe('lines that belong to the line before', () => {
  test.each([
    '\tat org.example.Shop.order(Shop.java:12)',
    'java.lang.IllegalStateException: no\n\tat org.example.Shop.order(Shop.java:12)\nCaused by: x\n\t... 3 more',
    'Error: no\n    at order (/shop/order.js:12:3)\n    at <anonymous>',
    'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\nValueError: no',
    'panic: no\n\ngoroutine 1 [running]:\nmain.main()\n\t/shop/main.go:7 +0x1d',
    "/shop/order.rb:12:in `order'\n\tfrom /shop/main.rb:3:in `<main>'",
    '[stacktrace]\n#0 /shop/a.php(12): order()\n#1 {main}',
    'System.Exception: no\n   at Shop.Order() in /shop/Order.cs:line 12\n--- End of stack trace ---',
    'stack backtrace:\n   0: shop::order\n             at ./src/order.rs:12:5',
  ])('become the stack if they are a stack trace: %j', (stack) => {
    expect(entriesOf(`${prefix} failed\nwhile ordering\n${stack}\n${prefix} next`)).toEqual([
      { ...head, message: 'failed\nwhile ordering', stack },
      { ...head, message: 'next' },
    ])
  })

  test('become part of the message if they are nothing else', () => {
    expect(entriesOf(`${prefix} query\nSELECT 1\n  FROM x\n${prefix} next`)).toEqual([
      { ...head, message: 'query\nSELECT 1\n  FROM x' },
      { ...head, message: 'next' },
    ])
  })

  test('keep blank lines between them, lose those after them, and are numbered', () => {
    const records = recordsOf(`x\n${prefix} a\n\n  b\n\n\n${prefix} c`)
    const found = records.map(({ firstLine, lastLine, more }) => [firstLine, lastLine, more.join('|')])
    expect(found).toEqual([
      [1, 1, ''],
      [2, 4, '|  b'],
      [7, 7, ''],
    ])
  })
})

describe('a crash', () => {
  test.each([
    ['panic: no', '\n\ngoroutine 1 [running]:\nmain.main()\n\t/shop/main.go:7 +0x1d'],
    ['fatal error: all goroutines are asleep', '\n\ngoroutine 1 [select (no cases)]:\nmain.main()'],
    ['Exception in thread "main" java.lang.OutOfMemoryError: no', '\n\tat a.B.c(B.java:1)'],
    ["thread 'main' panicked at src/main.rs:2:5:", '\nno\nnote: run with a variable'],
    ['Unhandled exception. System.InvalidOperationException: no', '\n   at A.B.C()'],
    ['Segmentation fault (core dumped)', ''],
  ])('after a line that is no error begins an entry: %s', (headline, rest) => {
    const start = '2026-11-20 10:00:00 INFO'
    const entries = entriesOf(`${start} started\n${headline}${rest}\n${start} restarted`)
    expect(entries).toMatchObject([
      { timestamp: time, ...info('started') },
      { timestamp: time, level: 'error' },
      { timestamp: time, ...info('restarted') },
    ])
    const { message, stack } = entries[1] as { message: string; stack?: string }
    expect(message.startsWith(headline)).toBe(true)
    expect(`${message}\n${stack ?? ''}`.split('\n').filter((line) => line !== '')).toEqual(
      `${headline}${rest}`.split('\n').filter((line) => line !== ''),
    )
  })

  test('after an error is its stack trace', () => {
    expect(entriesOf(`${prefix} failed\npanic: no\n\ngoroutine 1 [running]:`)).toEqual([
      { ...head, message: 'failed', stack: 'panic: no\n\ngoroutine 1 [running]:' },
    ])
  })

  test('after a record of JSON begins an entry', () => {
    const lines = ['{"level":"info","msg":"started"}', 'panic: no', '', 'goroutine 1 [running]:', 'main()']
    expect(entriesOf(lines.join('\n'))).toEqual([
      info('started'),
      { level: 'error', message: 'panic: no', stack: 'goroutine 1 [running]:\nmain()' },
    ])
  })

  test('without prefixes around it is a line like others', () => {
    expect(entriesOf('started\npanic: no')).toEqual([info('started'), info('panic: no')])
  })
})

describe('a file without prefixes', () => {
  test('has an entry for each line, but indented lines belong to the line before', () => {
    expect(entriesOf('one\ntwo\n  three\nfour')).toEqual([info('one'), info('two\n  three'), info('four')])
  })

  test('has a Python traceback as one entry, with the error as its message', () => {
    const stack =
      'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\nshop.OrderError: no'
    expect(entriesOf(`before\n${stack}\nafter`)).toEqual([
      info('before'),
      { ...info('shop.OrderError: no'), stack },
      info('after'),
    ])
  })

  test('does not become one record if one of its lines looks like a log line', () => {
    const lines = Array.from({ length: 500 }, (_, index) => `line ${index}`).join('\n')
    expect(entriesOf(`${prefix} once\n${lines}`).length).toBeGreaterThan(400)
  })

  test('before the first prefix has entries of its own, without a time', () => {
    expect(entriesOf(`Header: a\n${prefix} b`)).toEqual([info('Header: a'), { ...head, message: 'b' }])
  })
})

test('levels without a time begin a record in a file without times', () => {
  expect(entriesOf('INFO: a\nERROR: b')).toEqual([info('a'), { level: 'error', message: 'b' }])
})

test('levels without a time belong to the record before in a file with times, unless they are in brackets', () => {
  expect(entriesOf(`${prefix} a\nerror: b\n[WARN] c`)).toEqual([
    { ...head, message: 'a\nerror: b' },
    { level: 'warn', message: 'c' },
  ])
})

test('a record that exceeds the characters is continued by another entry with its time and level', () => {
  const line = `  ${'x'.repeat(9_998)}`
  const text = `${prefix} a\n${Array.from({ length: 14 }, () => line).join('\n')}`
  const entries = entriesOf(text) as { message: string; metadata?: unknown }[]
  expect(entries.map(({ metadata }) => metadata)).toEqual([undefined, { part: 2 }, { part: 3 }])
  expect(entries.map(({ message }) => message).join('\n')).toBe(text.slice(prefix.length + 1))
  for (const entry of entries) {
    expect(entry).toMatchObject(head)
    expect(entry.message.length).toBeLessThanOrEqual(limits.messageCharactersMax)
  }
})

const { linesMax } = recordLimits
test.each([
  ['  x\n'.repeat(linesMax * 2 + 10), [linesMax, linesMax, 8]],
  [`${'\n'.repeat(linesMax + 1)}  b`, [0, 0]],
])('a record that exceeds the lines, blank ones included, is continued', (lines, counts) => {
  expect(recordsOf(`${prefix} a\n${lines}`).map(({ more }) => more.length)).toEqual(counts)
})

test('a message that is too long becomes several entries, without half a character', () => {
  const message = '😀'.repeat(limits.messageCharactersMax + 1)
  const entries = entriesOf(`${prefix} [main] a.B - ${message}`) as { message: string }[]
  expect(entries.map((entry) => entry.message).join('')).toBe(message)
  expect(entries.map((entry) => Array.from(entry.message).length)).toEqual([limits.messageCharactersMax, 1])
  expect(entries[1]).toMatchObject({ ...head, metadata: { part: 2, thread: 'main' } })
})

test('a line that comes after a pause continues its record as an entry of its own', () => {
  expect(
    entriesOf(`${prefix} a\n<flush>\n\tat b.C.d(E.java:1)\n\tat f\n<flush>\nplain\n<flush>\n${prefix} g`),
  ).toEqual([
    { ...head, message: 'a' },
    { ...head, message: '\tat b.C.d(E.java:1)', stack: '\tat f', metadata: { part: 2 } },
    { ...head, message: 'plain', metadata: { part: 3 } },
    { ...head, message: 'g' },
  ])
})
