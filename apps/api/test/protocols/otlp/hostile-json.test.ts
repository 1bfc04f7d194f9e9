import { limits } from '@sluice/schema'
import { describe, expect, it, vi } from 'vitest'
import { recordLimits } from '../../../src/protocols/otlp/value-budget.ts'
import { problemCode } from '../../support/problem.ts'
import { sharedTestApi } from '../../support/shared-api.ts'
import { storedRows } from './otlp-api.ts'

const api = sharedTestApi()

/** A request with records whose JSON is given. */
const logs = (...records: readonly string[]): string =>
  `{"resourceLogs":[{"scopeLogs":[{"logRecords":[${records.join(',')}]}]}]}`
const bodyOf = (value: string): string => `{"body":${value}}`
/** A request with a record that has a body. */
const one = (value: string): string => logs(bodyOf(value))
const attribute = (key: string, value: string): string =>
  `{"attributes":[{"key":${JSON.stringify(key)},"value":${value}}]}`

const m = { message: 'm' }
const text = '{"stringValue":"m"}'

describe('a request in JSON', () => {
  it.each<[what: string, body: string, rows: readonly object[]]>([
    ['no resource', '{"resourceLogs":[]}', []],
    ['null', '{"resourceLogs":null}', []],
    ['nulls', '{"resourceLogs":[{"resource":null,"schemaUrl":null,"scopeLogs":null}]}', []],
    [
      'null in a record',
      logs('{"body":null,"attributes":null,"timeUnixNano":null,"flags":null}'),
      [{ message: '', metadata: {} }],
    ],
    ['blanks', `\n{ "resourceLogs" : [ {"scopeLogs":[{"logRecords":[ ${bodyOf(text)} ]}]} ] }\n`, [m]],
    ['an escaped name', one(text).replace('resourceLogs', 'resource\\u004cogs'), [m]],
    ['escaped names of records', logs(`{"b\\u006fdy":{"string\\u0056alue":"m"}}`), [m]],
    [
      'unknown fields',
      `{"a":1,"resourceLogs":[{"b":[2],"scopeLogs":[{"c":{},"logRecords":[{"d":{"e":1},"body":${text}}]}]}],"f":null}`,
      [m],
    ],
    [
      'fields in snake case, which are unknown',
      logs('{"severity_number":17,"event_name":"e"}'),
      [{ message: '', level: 'log' }],
    ],
    [
      'repeated names: the last one counts',
      `{"resourceLogs":[{"scopeLogs":[]}],"resourceLogs":[{"scopeLogs":[{"logRecords":[{}]}],"scopeLogs":[{"logRecords":[{},{}],"logRecords":[{"body":${text},"body":${text}}]}]}]}`,
      [m],
    ],
    ['several values: the last one counts', one('{"intValue":"1","stringValue":"m"}'), [m]],
    [
      'a name of a severity',
      logs('{"severityNumber":"SEVERITY_NUMBER_WARN2"}'),
      [{ level: 'warn', metadata: { severity_number: 14 } }],
    ],
    ['an unspecified severity', logs('{"severityNumber":"SEVERITY_NUMBER_UNSPECIFIED"}'), [{ level: 'log' }]],
    [
      'an unknown severity',
      logs('{"severityNumber":99}'),
      [{ level: 'log', metadata: { severity_number: 99 } }],
    ],
    [
      'numbers as texts',
      logs('{"severityNumber":"9","flags":"1","droppedAttributesCount":"2"}'),
      [{ level: 'info', metadata: { flags: 1, dropped_attributes_count: 2 } }],
    ],
    [
      'a time as a number',
      logs('{"timeUnixNano":1544712660300000000}'),
      [{ timestamp: '2018-12-13T14:51:00.300000Z' }],
    ],
    ['an integer as a number', one('{"intValue":-7}'), [{ message: '-7' }]],
    [
      'an integer of 64 bits as a number',
      one('{"intValue":9223372036854775807}'),
      [{ message: '9223372036854775807' }],
    ],
    ['an integer with leading zeros', one('{"intValue":"-007"}'), [{ message: '-7' }]],
    ['a double as a text', one('{"doubleValue":"1e3"}'), [{ message: '1000' }]],
    ['a double that is not finite', one('{"doubleValue":"-Infinity"}'), [{ message: '-Infinity' }]],
    [
      'a time as a number with an exponent',
      logs('{"timeUnixNano":1.7e18}', '{"timeUnixNano":17.00000000000000001E+17}'),
      [
        { timestamp: '2023-11-14T22:13:20.000000Z', metadata: {} },
        { timestamp: '2023-11-14T22:13:20.000000Z', metadata: { time_unix_nano: '1700000000000000001' } },
      ],
    ],
    [
      'a time as a number with a fraction of zeros',
      logs('{"timeUnixNano":1700000000000000000.0}', '{"timeUnixNano":170000000000000000000e-2}'),
      [{ timestamp: '2023-11-14T22:13:20.000000Z' }, { timestamp: '2023-11-14T22:13:20.000000Z' }],
    ],
    [
      'an integer as a number with an exponent',
      logs(bodyOf('{"intValue":1e17}'), bodyOf('{"intValue":-9.223372036854775807e18}')),
      [{ message: '100000000000000000' }, { message: '-9223372036854775807' }],
    ],
    ['the largest double', one('{"doubleValue":1.5e308}'), [{ message: '1.5e+308' }]],
    ['base64 for URLs', one('{"bytesValue":"-_8"}'), [{ message: '+/8=' }]],
    [
      'an id in upper case',
      logs('{"traceId":"0AF7651916CD43DD8448EB211C80319C"}'),
      [{ metadata: { trace_id: '0af7651916cd43dd8448eb211c80319c' } }],
    ],
    [
      'an id in base64, which is kept',
      logs('{"spanId":"t61rcWkgMzE="}'),
      [{ metadata: { span_id: 't61rcWkgMzE=' } }],
    ],
    ['an id of zeros', logs('{"traceId":"00000000000000000000000000000000"}'), [{ metadata: {} }]],
    ['a value without a type', one('{}'), [{ message: '' }]],
    [
      'an attribute without a key and a value',
      logs('{"attributes":[{}]}'),
      [{ metadata: { attributes: { '': null } } }],
    ],
    ['an escaped surrogate pair', one('{"stringValue":"\\ud83d\\ude00"}'), [{ message: '😀' }]],
  ])('may have %s', async (_what, body, rows) => {
    const response = await api.post(body)
    expect({ status: response.statusCode, body: response.body }).toEqual({ status: 200, body: '{}' })
    expect(storedRows(api)).toMatchObject(rows)
    expect(api.queue.rows).toHaveLength(rows.length)
  })

  it.each<[what: string, body: string, code: string]>([
    ['resourceLogs as an object', '{"resourceLogs":{}}', 'invalid_body'],
    ['resourceLogs as a text', '{"resourceLogs":"[]"}', 'invalid_body'],
    ['a resource as a number', '{"resourceLogs":[1]}', 'invalid_body'],
    ['scopeLogs as an object', '{"resourceLogs":[{"scopeLogs":{}}]}', 'invalid_body'],
    ['a scope as null', '{"resourceLogs":[{"scopeLogs":[null]}]}', 'invalid_body'],
    ['logRecords as a number', '{"resourceLogs":[{"scopeLogs":[{"logRecords":0}]}]}', 'invalid_body'],
    ['a cut off end', logs('{}').slice(0, -1), 'invalid_json'],
    ['only resource_logs', '{"resource_logs":[]}', 'invalid_entry'],
    ['no field', '{}', 'invalid_entry'],
    [
      'too many records',
      logs(...Array.from({ length: limits.recordsPerRequestMax + 1 }, () => '{}')),
      'too_many_entries',
    ],
  ])('is rejected with %s', async (_what, body, code) => {
    expect(problemCode(await api.post(body))).toBe(code)
    expect(api.queue.adds).toEqual([])
  })

  it('is an entry if it has a field of entries', async () => {
    const response = await api.post('{"resourceLogs":[],"level":"info","message":"m"}')
    expect(response.statusCode).toBe(202)
    expect(storedRows(api)).toMatchObject([{ level: 'info', message: 'm', metadata: { resourceLogs: [] } }])
    expect((await api.post('{"resourceLogs":[],"logs":[]}')).json()).toMatchObject({ accepted: 0 })
    expect(problemCode(await api.post('{"resourceLogs":[],"level":"info"}'))).toBe('invalid_entry')
  })
})

const deep = (levels: number): string =>
  `${'{"arrayValue":{"values":['.repeat(levels)}${text}${']}}'.repeat(levels)}`

describe('an invalid record in JSON', () => {
  it.each<[what: string, record: string, code: string]>([
    ['a number', '7', 'wrong_type'],
    ['null', 'null', 'wrong_type'],
    ['a text as its body', '{"body":"m"}', 'wrong_type'],
    ['a number as a text', bodyOf('{"stringValue":1}'), 'wrong_type'],
    ['a text as a boolean', bodyOf('{"boolValue":"true"}'), 'wrong_type'],
    ['a fraction as an integer', bodyOf('{"intValue":1.5}'), 'wrong_type'],
    ['an integer beyond 64 bits', bodyOf('{"intValue":"9223372036854775808"}'), 'wrong_type'],
    ['an exponent in a text as an integer', bodyOf('{"intValue":"1e3"}'), 'wrong_type'],
    ['an exponent beyond 64 bits', bodyOf('{"intValue":1e19}'), 'wrong_type'],
    ['an exponent of two digits', bodyOf('{"intValue":1e99}'), 'wrong_type'],
    ['an exponent of three digits', bodyOf('{"intValue":1e400}'), 'wrong_type'],
    ['a large number with a fraction', bodyOf('{"intValue":1700000000000000000.5}'), 'wrong_type'],
    [
      'a large number with an exponent and a fraction',
      '{"timeUnixNano":170000000000000000001e-2}',
      'wrong_type',
    ],
    ['a double beyond the largest one', bodyOf('{"doubleValue":1e400}'), 'wrong_type'],
    ['a negative double beyond the largest one', attribute('a', '{"doubleValue":-1e400}'), 'wrong_type'],
    ['a double beyond the largest one as a text', bodyOf('{"doubleValue":"1e400"}'), 'wrong_type'],
    ['a text as a double', bodyOf('{"doubleValue":"one"}'), 'wrong_type'],
    ['bytes that are not base64', bodyOf('{"bytesValue":"a b"}'), 'wrong_type'],
    ['an array as a list', bodyOf('{"arrayValue":[]}'), 'wrong_type'],
    ['an object of values', bodyOf('{"kvlistValue":{"values":{}}}'), 'wrong_type'],
    ['an object as attributes', '{"attributes":{"a":1}}', 'wrong_type'],
    ['a number as a key', '{"attributes":[{"key":1}]}', 'wrong_type'],
    ['a negative time', '{"timeUnixNano":"-1"}', 'wrong_type'],
    ['a time beyond 64 bits', '{"timeUnixNano":"18446744073709551616"}', 'wrong_type'],
    ['a time in parts', '{"timeUnixNano":{"low":1,"high":2}}', 'wrong_type'],
    ['an unknown name of a severity', '{"severityNumber":"SEVERITY_NUMBER_LOUD"}', 'wrong_type'],
    ['flags beyond 32 bits', '{"flags":4294967296}', 'wrong_type'],
    ['a number as an id', '{"traceId":1}', 'wrong_type'],
    ['half a surrogate pair', bodyOf('{"stringValue":"\\ud83d"}'), 'invalid_unicode'],
    ['half a surrogate pair in a key', '{"attributes":[{"key":"\\ude00"}]}', 'invalid_unicode'],
    ['15 levels', attribute('k', deep(15)), 'too_deep'],
    ['10,000 levels', bodyOf(deep(10_000)), 'too_deep'],
    [
      '10,000 levels in an unknown field',
      `{"unknown":${'['.repeat(10_000)}${']'.repeat(10_000)}}`,
      'too_deep',
    ],
    [
      'a long message',
      bodyOf(`{"stringValue":"${'a'.repeat(limits.messageCharactersMax + 1)}"}`),
      'too_long',
    ],
    ['too many values', attribute('k', `{"arrayValue":{"values":[${'{},'.repeat(40_000)}{}]}}`), 'too_large'],
    ['too many bytes', `{"unknown":"${'a'.repeat(recordLimits.bytesMax)}"}`, 'too_large'],
    ['too many bytes in escapes', `{"unknown":"${'\\u0061'.repeat(400_000)}"}`, 'too_large'],
  ])('is rejected without affecting the others: %s', async (_what, record, code) => {
    const response = await api.post(logs(bodyOf(text), record, bodyOf(text)))
    expect(response.json()).toEqual({
      partialSuccess: {
        rejectedLogRecords: '1',
        errorMessage: expect.stringMatching(
          new RegExp(`^1 of 3 records were rejected \\(${code} 1\\)\\. Record 1: .{5,100}\\.$`),
        ) as unknown,
      },
    })
    expect(storedRows(api)).toMatchObject([m, m])
  })

  it.each([
    ['resource', (head: string) => `"resource":${head},"scopeLogs":[{"logRecords":[{}]}]`],
    ['scope', (head: string) => `"scopeLogs":[{"scope":${head},"logRecords":[{}]}]`],
    ['schema URL', (head: string) => `"schemaUrl":${head},"scopeLogs":[{"logRecords":[{}]}]`],
  ])('is each record of an invalid %s', async (_what, wrap) => {
    const response = await api.post(
      `{"resourceLogs":[{${wrap('[7]')}},{"scopeLogs":[{"logRecords":[${bodyOf(text)}]}]}]}`,
    )
    expect(response.json()).toMatchObject({ partialSuccess: { rejectedLogRecords: '1' } })
    expect(storedRows(api)).toMatchObject([m])
  })
})

it('is never passed to JSON.parse with an escaped name', async () => {
  const parse = vi.spyOn(JSON, 'parse')
  // JSON.parse might read the name of the second record as that of the first: see `buildExactly`.
  for (const name of ['\\\\', '\\n']) {
    const response = await api.post(logs(`{"a":1,"${name}":2,"body":${text}}`))
    expect(response.statusCode).toBe(200)
  }
  expect(parse.mock.calls.filter(([json]) => json.includes('"a":1'))).toEqual([])
  expect(storedRows(api)).toMatchObject([m, m])
})
