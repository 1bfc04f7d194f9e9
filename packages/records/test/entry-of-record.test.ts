import { parseJsonExactly, parseTimestamp } from '@sluice/rows'
import { runsOf } from '@sluice/harness'
import { assert, constantFrom, dictionary, jsonValue, property, tuple } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { entryOfRecord } from '../src/index.ts'

const entryOf = (record: Record<string, unknown>): Record<string, unknown> =>
  entryOfRecord(record, { defaultLevel: 'log' })
const isNumber = (value: unknown): boolean =>
  typeof value === 'number' || (typeof value === 'string' && /^ ?\d+$/.test(value))
const base = { level: 'info', message: 'm' }

describe('an entry of the contract', () => {
  test('comes out as it is', () => {
    const entry = {
      timestamp: '2026-11-20t22:43:01,123456789+01',
      ...base,
      service: 'shop',
      environment: 'staging',
      source: 'edge',
      url: 'https://a.example/b?c',
      pathname: '/b',
      stack: 'Error: x\n    at y',
      metadata: { level: 'x', deep: { a: [null] } },
    }
    expect(entryOf(entry)).toEqual(entry)
  })

  test('has no fields that are null', () => {
    const absent = { service: null, stack: null, timestamp: null, environment: null, metadata: null }
    expect(entryOf({ ...base, ...absent })).toEqual(base)
  })

  test('has no unknown field with the name of a value in its metadata: nothing is replaced', () => {
    expect(entryOf({ ...base, host: 'outer', metadata: { host: 'inner' } })).toEqual({
      ...base,
      metadata: { host: 'inner', host_2: 'outer' },
    })
  })

  test('keeps its fields if another is filled in', () => {
    expect(entryOf({ ...base, service: 'own', app: 'other', time: '2026-11-20 10:00:00' })).toEqual({
      ...base,
      service: 'own',
      timestamp: '2026-11-20T10:00:00',
      metadata: { app: 'other' },
    })
  })
})

describe('the time', () => {
  test.each([
    ['2026-11-20 22:43:01,123', '2026-11-20T22:43:01.123'],
    ['2026-11-20 22:43:01.123 +0100', '2026-11-20T22:43:01.123+0100'],
    ['2026/11/20 22:43:01 UTC', '2026-11-20T22:43:01Z'],
    ['20261120T224301Z', '2026-11-20T22:43:01Z'],
    [1_795_214_581, '2026-11-20T22:43:01Z'],
    [1_795_214_581.25, '2026-11-20T22:43:01.25Z'],
    [1_795_214_581_123, '2026-11-20T22:43:01.123Z'],
    ['1795214581123456789', '2026-11-20T22:43:01.123456789Z'],
    [{ $date: '2026-11-20T22:43:01.123+01:00' }, '2026-11-20T22:43:01.123+01:00'],
  ])('%j is read', (time, timestamp) => {
    expect(entryOf({ ...base, time })).toEqual({ ...base, timestamp })
    expect(parseTimestamp(timestamp)).toBeDefined()
  })

  test('is found under many names', () => {
    const names =
      'timestamp @timestamp time ts datetime eventTime asctime t __REALTIME_TIMESTAMP Timestamp @t'
    const expected = { ...base, timestamp: '2026-11-20T22:43:01.123456Z' }
    for (const name of names.split(' '))
      expect(entryOf({ ...base, [name]: '1795214581123456' })).toEqual(expected)
  })

  test.each([
    [{ instant: { epochSecond: 1_795_168_800, nanoOfSecond: 5 } }, '2026-11-20T10:00:00.000000005Z'],
    [{ timestamp: { seconds: 1_795_168_800, nanos: 123_000_000 } }, '2026-11-20T10:00:00.123000000Z'],
    [{ timeMillis: 1_795_168_800_123 }, '2026-11-20T10:00:00.123Z'],
    [{ record: { time: { repr: '2026-11-20 10:00:00.5+01:00' } } }, '2026-11-20T10:00:00.5+01:00'],
  ])('is found in objects and names of some loggers: %j', (fields, time) => {
    expect(entryOf({ ...base, ...fields })['timestamp']).toBe(time)
  })

  test('of nanoseconds keeps all digits if the number was parsed exactly', () => {
    const record = parseJsonExactly('{"level":"info","message":"m","ts":1795214581123456789}')
    expect(entryOf(record as Record<string, unknown>)['timestamp']).toBe('2026-11-20T22:43:01.123456789Z')
  })

  test.each(['soon', '2026-02-30T00:00:00Z', '1969-12-31T23:59:59Z', 5, -1, 1e300, true, '20261120', ['x']])(
    'that cannot be read is kept in the metadata: %j',
    (time) => {
      expect(entryOf({ ...base, timestamp: time })).toEqual({ ...base, metadata: { timestamp: time } })
      expect(entryOf({ ...base, timestamp: time, ts: 1_795_214_581 })).toMatchObject({
        timestamp: '2026-11-20T22:43:01Z',
        metadata: { timestamp: time },
      })
    },
  )

  test('is always in a form that the API reads', () => {
    const parts = tuple(
      constantFrom('0001', '1969', '1970', '2026', '2261', '2262'),
      constantFrom('-', '/', ''),
      constantFrom('01', '02', '12', '13'),
      constantFrom('01', '29', '31', '32'),
      constantFrom('T', ' '),
      constantFrom('00', '23', '24'),
      constantFrom('00', '59', '60'),
      constantFrom(':60', ':59', ''),
      constantFrom('', '.1', ',123456789'),
      constantFrom('', 'Z', '+01:00', '-0130', '+23', '-24:00', ' UTC'),
    )
    assert(
      property(parts, ([y, s, mo, d, t, h, mi, se, f, o]) => {
        const text = `${y}${s}${mo}${s}${d}${t}${h}:${mi}${se}${se === '' ? '' : f}${o}`
        const { timestamp } = entryOf({ ...base, timestamp: text })
        // A time of another form is changed into one of the contract's.
        const expected = timestamp ?? text
        expect(parseTimestamp(expected as string) !== undefined).toBe(timestamp !== undefined)
      }),
      runsOf(3_000),
    )
  })
})

describe('the level', () => {
  test.each([
    [{ level: 'WARNING' }, 'warn'],
    [{ levelname: 'ERROR' }, 'error'],
    [{ 'log.level': 'debug' }, 'debug'],
    [{ lvl: 'dbg' }, 'debug'],
    [{ PRIORITY: '3' }, 'error'],
    [{ severity: 4 }, 'warn'],
    [{ level: '50' }, 'error'],
    [{ severityText: 'INFO', severityNumber: 17 }, 'info', { severityNumber: 17 }],
    [{ levelno: 30 }, 'warn'],
    [{ level: 4, short_message: 's', version: '1.1' }, 'warn', { short_message: 's', version: '1.1' }],
    [{ level: 200, level_name: 'WARNING' }, 'warn', { level: 200 }],
    [{ jsonPayload: { level: 'error' } }, 'error'],
    [{ s: 'W', t: { $date: '2026-11-20T22:43:01Z' } }, 'warn'],
  ])('is found in %j', (record, level, metadata?: unknown) => {
    const entry = entryOf({ message: 'm', ...record })
    expect(entry['level']).toBe(level)
    expect(entry['metadata']).toEqual(metadata)
  })

  test.each([
    [{ level: 'FATAL' }, 'error', 'FATAL'],
    [{ level: 10 }, 'debug', 10],
    [{ PRIORITY: '0' }, 'error', '0'],
    [{ log: { level: 'notice' } }, 'info', 'notice'],
  ])('that says more than the level of the contract is kept: %j', (record, level, originalLevel) => {
    expect(entryOf({ message: 'm', ...record })).toEqual({ level, message: 'm', metadata: { originalLevel } })
  })

  test.each(['banana', 35, 1, true, ['info'], { a: 1 }, 'constructor', '__proto__'])(
    'that is unknown is kept in the metadata, and the default is used: %j',
    (level) => {
      expect(entryOf({ level, message: 'm' })).toEqual({ level: 'log', message: 'm', metadata: { level } })
    },
  )
})

describe('the message', () => {
  test('is found under many names', () => {
    for (const name of 'message msg MESSAGE event log body text short_message full_message'.split(' '))
      expect(entryOf({ level: 'INFO', [name]: 'm', a: 1 })).toEqual({ ...base, metadata: { a: 1 } })
  })

  test.each([
    { '@level': 'info', '@message': 'm', '@module': 'a', '@timestamp': '2026-11-20T10:00:00.123456Z' },
    { severity: 'INFO', jsonPayload: { message: 'm', a: 1 }, timestamp: '2026-11-20T10:00:00.123456Z' },
    { level: 'INFO', logEvent: { message: 'm', a: 1 }, time: '2026-11-20T10:00:00.123456Z' },
    {
      record: {
        level: { name: 'INFO', no: 20 },
        message: 'm',
        time: { repr: '2026-11-20T10:00:00.123456Z' },
      },
    },
  ])('is found in records of hclog, Google, Logstash and Loguru: %j', (record) => {
    expect(entryOf(record)).toMatchObject({ ...base, timestamp: '2026-11-20T10:00:00.123456Z' })
  })

  test('of Loguru has a level with other values, which are kept', () => {
    const level = { name: 'ERROR', no: 40, icon: 'x' }
    expect(entryOf({ record: { level, message: 'm', line: 7 } })).toEqual({
      level: 'error',
      message: 'm',
      metadata: { record: { line: 7 }, originalLevel: level },
    })
  })

  test('is the JSON of the record if there is none', () => {
    const message = '{"level":"info","a":1}'
    expect(entryOf({ level: 'info', a: 1 })).toEqual({ level: 'info', message, metadata: { a: 1 } })
  })

  test('of Docker loses the newline at its end', () => {
    const record = { log: 'text\n', stream: 'stderr', time: '2026-11-20T22:43:01.123456789Z' }
    const entry = { timestamp: record.time, level: 'log', message: 'text', metadata: { stream: 'stderr' } }
    expect(entryOf(record)).toEqual(entry)
  })
})

describe('other fields', () => {
  test.each([
    [{ 'service.name': 'shop' }, { service: 'shop' }],
    [{ service: { name: 'shop', id: 1 } }, { service: 'shop', metadata: { service: { id: 1 } } }],
    [{ service: 'x'.repeat(257) }, { metadata: { service: 'x'.repeat(257) } }],
    [{ env: 'Prod' }, { environment: 'production' }],
    [{ environment: 'qa' }, { metadata: { environment: 'qa' } }],
    [{ source: 'nginx' }, { metadata: { source: 'nginx' } }],
    [{ url: { full: 'https://a/b', path: '/b' } }, { url: 'https://a/b', pathname: '/b' }],
    [{ exc_info: ['a', 'b'] }, { stack: 'a\nb' }],
    [{ error: { stack_trace: 's', type: 'T' } }, { stack: 's', metadata: { error: { type: 'T' } } }],
    [
      { meta: { service: 'shop', Env: 'dev', a: 1 } },
      { service: 'shop', environment: 'development', metadata: { meta: { a: 1 } } },
    ],
    [{ fields: { 'service.name': 'shop', error: { stack: 's' } } }, { service: 'shop', stack: 's' }],
    [
      { record: { extra: { service: { name: 'shop', id: 1 } }, line: 7 }, jsonPayload: { url: '/a' } },
      { service: 'shop', url: '/a', metadata: { record: { extra: { service: { id: 1 } }, line: 7 } } },
    ],
    [
      { meta: { service: 'inner' }, app: 'own' },
      { service: 'own', metadata: { meta: { service: 'inner' } } },
    ],
    // What is a time, a level or a message there may belong to something else.
    [
      { meta: { date: '2026-01-01', level: 'fatal', msg: 'n', extra: { service: 'x' } } },
      { metadata: { meta: { date: '2026-01-01', level: 'fatal', msg: 'n', extra: { service: 'x' } } } },
    ],
    [{ metadata: 'text' }, { metadata: { metadata: 'text' } }],
    [{ metadata: { a: 1 }, msg: 2, a: 3 }, { metadata: { a: 1, msg: 2, a_2: 3 } }],
  ])('are found or kept: %j', (fields, expected) => {
    // The name of the time changes every record.
    const entry = entryOf({ ...base, ts: 1_795_214_581, ...fields })
    expect(entry).toEqual({ ...base, timestamp: '2026-11-20T22:43:01Z', ...expected })
  })

  test('the name of a bunyan record is its service', () => {
    const record = { name: 'shop', hostname: 'h', pid: 1, level: 30, msg: 'm', v: 0 }
    expect(entryOf(record)).toEqual({ ...base, service: 'shop', metadata: { hostname: 'h', pid: 1, v: 0 } })
    // As splunk-bunyan-logger sends it.
    const sent = { name: 'shop', pid: 1, msg: 'm', v: 0, severity: 'info' }
    expect(entryOf(sent)).toEqual({ ...base, service: 'shop', metadata: { pid: 1, v: 0 } })
  })
})

describe('hostile records', () => {
  test('numbers that were parsed exactly keep all digits, and are no objects with fields', () => {
    const metadata = '"n":123456789012345678901234567890,"deep":{"f":[1e400]},"error":1e400'
    const entry = entryOf(parseJsonExactly(`{"msg":"m",${metadata}}`) as typeof base)
    expect(JSON.stringify(entry['metadata'])).toBe(`{${metadata}}`)
  })

  test('a record that is nested very deeply has an empty message', () => {
    const depth = 1_000_000
    const record = parseJsonExactly(`{"a":${'['.repeat(depth)}1e400${']'.repeat(depth)}}`)
    expect(entryOf(record as typeof base)['message']).toBe('')
  })

  test('names of the prototype are data', () => {
    const text =
      '{"msg":"m","__proto__":{"level":"error"},"constructor":1,"log":{"__proto__":2,"level":"warn"}}'
    const entry = entryOf(JSON.parse(text) as Record<string, unknown>)
    expect(JSON.stringify(entry)).toBe(
      '{"level":"warn","message":"m","metadata":{"__proto__":{"level":"error"},"constructor":1,"log":{"__proto__":2}}}',
    )
    expect(Object.getPrototypeOf(entry['metadata'])).toBe(Object.prototype)
  })

  /** Names of levels and times, whose numbers are translated, also as strings. */
  const TRANSLATED: ReadonlySet<string> = new Set(['level', 'Level', 'severity', 'time', 'ts'])

  test('no value of any record is lost', () => {
    const names = constantFrom(
      ...'level Level severity message msg log time ts service app metadata environment error stack'.split(
        ' ',
      ),
      ...'url source a a_2 __proto__ originalLevel meta record extra'.split(' '),
    )
    const stringsOf = (value: unknown): unknown[] =>
      typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsOf) : [value]
    assert(
      property(dictionary(names, jsonValue({ maxDepth: 2 })), (record) => {
        const kept = new Set(stringsOf(entryOf(record)))
        const values = Object.entries(record).flatMap(([name, value]) =>
          name === 'stack' || (TRANSLATED.has(name) && isNumber(value)) ? [] : stringsOf(value),
        )
        // For a field of the contract, null means nothing.
        expect(values.filter((value) => value !== null && !kept.has(value))).toEqual([])
      }),
      { ...runsOf(2_000), examples: [[{ severity: '3' }]] },
    )
  })
})
