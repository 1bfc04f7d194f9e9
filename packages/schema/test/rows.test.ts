import { describe, expect, it } from 'vitest'
import { EntryValidator } from '../src/entry.ts'
import { parseJsonExactly } from '../src/json.ts'
import { InexactNumberError, rowAsJson, rowColumns, startRows } from '../src/rows.ts'
import { ID, metadataOf, readRow, rowOf, shape, stamp } from './support/shape.ts'

/** The day from which a row may be dropped. */
const expiry = (receivedAtMs: number, retentionDays: number): string | undefined =>
  startRows({ ...stamp, receivedAtMs, retentionDays }).text.split('\t')[rowColumns.indexOf('expires_on')]

describe('a row', () => {
  it('holds what the server adds and what was sent', () => {
    const sent = {
      level: 'warn',
      message: 'hello',
      environment: 'staging',
      source: 'edge',
      service: 'shop',
      url: 'https://example.com/a?b',
      pathname: '/a',
      stack: 'Error: x\n    at y',
      timestamp: '2026-11-20T23:43:01.123456+01:00',
      metadata: { a: 1 },
    }
    expect(readRow(JSON.stringify(sent))).toEqual({
      ...sent,
      metadata: undefined,
      timestamp: '2026-11-20 22:43:01.123456',
      metadata_text: '{"a":1}',
      id: ID,
      project_id: 'demo',
      received_at: '2026-11-20 23:59:59.999',
      expires_on: '2026-12-21',
    })
  })

  it('has the time of receipt where no timestamp was sent', () => {
    expect(readRow('{"level":"info","message":"m"}')['timestamp']).toBe('2026-11-20 23:59:59.999')
  })

  it.each(['environment', 'source', 'service', 'url', 'pathname', 'stack', 'timestamp', 'metadata'])(
    'takes null for %s as if it were absent',
    (field) => {
      expect(readRow(`{"level":"info","message":"m","${field}":null}`)).toEqual(
        readRow('{"level":"info","message":"m"}'),
      )
    },
  )

  it('is kept as many whole days as the project keeps its rows', () => {
    expect(expiry(Date.UTC(2026, 10, 20), 1)).toBe('2026-11-22')
    expect(expiry(Date.UTC(2026, 10, 20, 23, 59, 59, 999), 1)).toBe('2026-11-22')
    expect(expiry(Date.UTC(2026, 11, 31), 730)).toBe('2028-12-31')
  })

  it.each([
    'line\nfeed',
    'carriage\rreturn\r\n',
    'separators \u2028 \u2029 \u0085',
    '"quotes" and \\ backslashes \\" \\\\n',
    'NUL \0 and others \u0001\u001f\u007f',
    '😀 grüße 日本語 \ufeff \uffff \u{10ffff}',
    '","project_id":"other"}\n{"project_id":"other',
    '</script><!--',
    "'; DROP TABLE logs; --",
    '\\u0000 \\ud83d',
    'tab\tand\ttabs \\t',
    '\\N',
    '',
  ])('is one line of all columns whatever its strings hold: %j', (text) => {
    const sent = { level: 'info', message: text, service: text, metadata: { [text]: [text] }, [text]: text }
    const row = rowOf(JSON.stringify(sent))
    expect(row.indexOf('\n')).toBe(row.length - 1)
    expect(row.split('\t')).toHaveLength(rowColumns.length)
    expect(readRow(JSON.stringify(sent))).toMatchObject({
      message: text,
      service: text,
      project_id: 'demo',
      metadata_text: JSON.stringify({ [text]: [text] }),
    })
  })
})

describe('rowAsJson', () => {
  it('is undefined for what is no row', () => {
    expect(rowAsJson('a\tb\n')).toBeUndefined()
  })

  it('takes escapes back in one pass', () => {
    const fields = ['demo', '', '', '', '', '', '', '', '', '', '', '\\\\n\\n\\\\\\t', '', '{}']
    expect(JSON.parse(rowAsJson(`${fields.join('\t')}\n`) ?? '')).toMatchObject({ message: '\\n\n\\\t' })
  })
})

describe('unknown fields', () => {
  it('are kept in the metadata, after what it has, in the order they were sent', () => {
    expect(metadataOf('{"z":1,"level":"info","metadata":{"m":0},"message":"m","a":{"b":[null]}}')).toBe(
      '{"m":0,"z":1,"a":{"b":[null]}}',
    )
  })

  it('do not replace what the metadata has under their names', () => {
    expect(metadataOf('{"level":"info","message":"m","a":1,"b":2,"metadata":{"a":null}}')).toBe(
      '{"a":null,"b":2}',
    )
  })

  it('are kept where metadata is null', () => {
    expect(metadataOf('{"level":"info","message":"m","a":1,"metadata":null}')).toBe('{"a":1}')
  })

  it.each([
    'id',
    'project_id',
    'received_at',
    'expires_on',
    'metadata_text',
    'dead_letters',
    '_partition_id',
    '',
    ' level',
    'Level',
    'toJSON',
  ])('named "%s" never become a column', (name) => {
    const text = JSON.stringify({ level: 'info', message: 'm', [name]: 'forged' })
    expect(readRow(text)).toMatchObject({
      id: ID,
      project_id: 'demo',
      received_at: '2026-11-20 23:59:59.999',
      expires_on: '2026-12-21',
      metadata_text: JSON.stringify({ [name]: 'forged' }),
    })
    expect(rowOf(text).match(/forged/g)).toHaveLength(1)
  })
})

describe('names of prototypes', () => {
  const names = [
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'prototype',
    'valueOf',
    '__defineGetter__',
  ]

  it.each(names)('%s as an unknown field is data', (name) => {
    expect(metadataOf(`{"level":"info","message":"m","${name}":{"polluted":true}}`)).toBe(
      `{"${name}":{"polluted":true}}`,
    )
  })

  it.each(names)('%s within the metadata is data, at every level', (name) => {
    const metadata = `{"${name}":{"${name}":[{"${name}":1}]}}`
    expect(metadataOf(`{"level":"info","message":"m","metadata":${metadata}}`)).toBe(metadata)
  })

  it.each(names)('%s in both is that of the metadata', (name) => {
    expect(metadataOf(`{"level":"info","message":"m","${name}":1,"metadata":{"${name}":2}}`)).toBe(
      `{"${name}":2}`,
    )
  })

  it('do not touch any prototype', () => {
    rowOf('{"level":"info","message":"m","__proto__":{"polluted":1},"metadata":{"__proto__":{"polluted":1}}}')
    rowOf('{"level":"info","message":"m","constructor":{"prototype":{"polluted":1}}}')
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
    expect(Object.getPrototypeOf({})).toBe(Object.prototype)
  })

  it('do not lend an entry the metadata or the timestamp of its prototype', () => {
    const row = readRow('{"level":"info","message":"m","__proto__":{"timestamp":"2026-01-01T00:00:00Z"}}')
    expect(row).toMatchObject({ timestamp: '2026-11-20 23:59:59.999' })
  })
})

describe('numbers', () => {
  it.each(['9007199254740991', '-9007199254740991', '0.1', '-1.5e-7'])(
    'that JavaScript holds need no exact parser: %s',
    (digits) => {
      expect(metadataOf(`{"level":"info","message":"m","n":${digits}}`)).toBe(`{"n":${digits}}`)
    },
  )

  it.each(['9007199254740993', '-9223372036854775808', '1e400', '1e21'])(
    'that it does not hold ask for the exact parser: %s',
    (digits) => {
      for (const metadata of [`{"n":${digits}}`, `{"a":[{"b":[${digits}]}]}`]) {
        const value: unknown = JSON.parse(`{"level":"info","message":"m","metadata":${metadata}}`)
        expect(() => shape(value)).toThrow(InexactNumberError)
      }
      expect(() => shape(JSON.parse(`{"level":"info","message":"m","n":${digits}}`))).toThrow(
        InexactNumberError,
      )
    },
  )

  it.each([
    '9007199254740992',
    '9007199254740993',
    '-9007199254740993',
    '9223372036854775807',
    '-9223372036854775808',
    '18446744073709551615',
    '18446744073709551616',
    '1e308',
    '1e400',
    '-1E400',
    '1'.repeat(400),
  ])('beyond those keep their digits: %s', (digits) => {
    const metadata = `{"n":[${digits}],"s":"x","i":9007199254740993}`
    expect(exactRow(metadata)).toMatch(new RegExp(`\t${RegExp.escape(metadata)}\n$`))
  })

  it('that are numbers where an object is asked for are refused, exactly parsed or not', () => {
    const value = parseJsonExactly('{"level":"info","message":"m","metadata":1e400}')
    const validator = new EntryValidator()
    expect(validator.isEntry(value)).toBe(false)
    expect(validator.explain(value)).toMatchObject([{ path: '/metadata', code: 'wrong_type' }])
    expect(validator.explain(parseJsonExactly('1e400'))).toMatchObject([{ path: '', code: 'wrong_type' }])
  })
})

function exactRow(metadata: string): string {
  const shaped = shape(parseJsonExactly(`{"level":"info","message":"m","metadata":${metadata}}`))
  if ('error' in shaped) throw new Error(shaped.error.message)
  return shaped.row
}
