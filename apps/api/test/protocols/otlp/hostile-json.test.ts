import { limits } from '@sluice/schema'
import { describe, expect, it } from 'vitest'
import { problemCode } from '../../support/problem.ts'
import { sharedTestApi, storedRows } from '../../support/shared-api.ts'

const api = sharedTestApi()

/** A request with records whose JSON is given. */
const logs = (...records: readonly string[]): string =>
  `{"resourceLogs":[{"scopeLogs":[{"logRecords":[${records.join(',')}]}]}]}`
const bodyOf = (value: string): string => `{"body":${value}}`
const attribute = (key: string, value: string): string =>
  `{"attributes":[{"key":${JSON.stringify(key)},"value":${value}}]}`

const m = { message: 'm' }
const text = '{"stringValue":"m"}'

describe('a request in JSON', () => {
  it.each<[what: string, body: string, rows: number]>([
    ['no resource', '{"resourceLogs":[]}', 0],
    ['nulls', '{"resourceLogs":[{"resource":null,"schemaUrl":null,"scopeLogs":null}]}', 0],
    ['blanks', `\n{ "resourceLogs" : [ {"scopeLogs":[{"logRecords":[ ${bodyOf(text)} ]}]} ] }\n`, 1],
    ['an escaped name', logs(bodyOf(text)).replace('resourceLogs', 'resource\\u004cogs'), 1],
    [
      'unknown fields',
      `{"a":1,"resourceLogs":[{"b":[2],"scopeLogs":[{"c":{},"logRecords":[{"d":{"e":1},"body":${text}}]}]}],"f":null}`,
      1,
    ],
    [
      'repeated names: the last one counts',
      `{"resourceLogs":[{"scopeLogs":[]}],"resourceLogs":[{"scopeLogs":[{"logRecords":[{}]}],"scopeLogs":[{"logRecords":[{},{}],"logRecords":[{"body":${text},"body":${text}}]}]}]}`,
      1,
    ],
  ])('may have %s', async (_what, body, rows) => {
    const response = await api.post(body)
    expect({ status: response.statusCode, body: response.body }).toEqual({ status: 200, body: '{}' })
    expect(storedRows(api)).toMatchObject(Array.from({ length: rows }, () => m))
    expect(api.queue.rows).toHaveLength(rows)
  })

  it.each<[record: string, row: object]>([
    ['{"body":null,"attributes":null,"timeUnixNano":null,"flags":null}', { message: '', metadata: {} }],
    [String.raw`{"b\u006fdy":{"string\u0056alue":"m"}}`, m],
    ['{"severity_number":17,"event_name":"e"}', { message: '', level: 'log' }],
    ['{"severityNumber":"SEVERITY_NUMBER_WARN2"}', { level: 'warn', metadata: { severity_number: 14 } }],
    ['{"severityNumber":"9","flags":"1"}', { level: 'info', metadata: { flags: 1 } }],
    ['{"timeUnixNano":1544712660300000000}', { timestamp: '2018-12-13 14:51:00.300000' }],
    ['{"timeUnixNano":1.7e18}', { timestamp: '2023-11-14 22:13:20.000000', metadata: {} }],
    [
      '{"timeUnixNano":17.00000000000000001E+17}',
      { timestamp: '2023-11-14 22:13:20.000000', metadata: { time_unix_nano: '1700000000000000001' } },
    ],
    ['{"spanId":"0AF7651916CD43DD"}', { metadata: { span_id: '0af7651916cd43dd' } }],
    // Base64 is kept.
    ['{"spanId":"t61rcWkgMzE="}', { metadata: { span_id: 't61rcWkgMzE=' } }],
    ['{"attributes":[{}]}', { metadata: { attributes: { '': null } } }],
    [`{"unknown":${'['.repeat(10_000)}${']'.repeat(10_000)}}`, { metadata: {} }],
  ])('may have the record %s', async (record, row) => {
    expect((await api.post(logs(record))).body).toBe('{}')
    expect(storedRows(api)).toMatchObject([row])
  })

  it.each<[value: string, message: string]>([
    ['{"intValue":"1","stringValue":"m"}', 'm'],
    ['{"intValue":9223372036854775807}', '9223372036854775807'],
    ['{"intValue":-9.223372036854775807e18}', '-9223372036854775807'],
    ['{"intValue":"9223372036854775808"}', '9223372036854775808'],
    ['{"intValue":18446744073709552000}', '18446744073709552000'],
    ['{"intValue":-1e+19}', '-1e+19'],
    ['{"intValue":1700000000000000000.5}', '1700000000000000000.5'],
    ['{"doubleValue":"-Infinity"}', '-Infinity'],
    ['{"bytesValue":"-_8"}', '-_8'],
    [String.raw`{"stringValue":"\ud83d\ude00"}`, '😀'],
    ['{}', ''],
  ])('may have the body %s', async (value, message) => {
    expect((await api.post(logs(bodyOf(value)))).body).toBe('{}')
    expect(storedRows(api)).toMatchObject([{ message }])
  })

  it.each<[what: string, body: string, code: string]>([
    ['resourceLogs as an object', '{"resourceLogs":{}}', 'invalid_body'],
    ['scopeLogs as an object', '{"resourceLogs":[{"scopeLogs":{}}]}', 'invalid_body'],
    ['a scope as null', '{"resourceLogs":[{"scopeLogs":[null]}]}', 'invalid_body'],
    ['logRecords as a number', '{"resourceLogs":[{"scopeLogs":[{"logRecords":0}]}]}', 'invalid_body'],
    ['a cut off end', logs('{}').slice(0, -1), 'invalid_json'],
    ['too many records', logs(`${'{},'.repeat(limits.recordsPerRequestMax)}{}`), 'too_many_entries'],
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

const long = 'a'.repeat(limits.messageCharactersMax + 1)
/** Records with a value of a wrong type. */
const wrongTypes: readonly string[] = [
  '7',
  '{"attributes":[{"key":1}]}',
  '{"timeUnixNano":"-1"}',
  '{"timeUnixNano":"18446744073709551616"}',
  '{"timeUnixNano":170000000000000000001e-2}',
  '{"severityNumber":"SEVERITY_NUMBER_LOUD"}',
  '{"flags":4294967296}',
  attribute('a', '{"doubleValue":-1e400}'),
  ...[
    '{"stringValue":1}',
    '{"boolValue":"true"}',
    '{"intValue":1e400}',
    '{"intValue":"a"}',
    '{"doubleValue":1e400}',
    '{"doubleValue":"1e400"}',
    '{"bytesValue":1}',
    '{"kvlistValue":{"values":{}}}',
  ].map(bodyOf),
]

interface PartialSuccess {
  readonly partialSuccess: { readonly rejectedLogRecords: string; readonly errorMessage: string }
}

it.each<[what: string, record: string, code: string]>([
  ['half a surrogate pair', bodyOf('{"stringValue":"\\ud83d"}'), 'invalid_unicode'],
  ['half a surrogate pair in a key', '{"attributes":[{"key":"\\ude00"}]}', 'invalid_unicode'],
  ['15 levels', attribute('k', deep(15)), 'too_deep'],
  ['10,000 levels', bodyOf(deep(10_000)), 'too_deep'],
  ['a long message', bodyOf(`{"stringValue":"${long}"}`), 'too_long'],
  ['too many values', attribute('k', `{"arrayValue":{"values":[${'{},'.repeat(40_000)}{}]}}`), 'too_large'],
])('a record above a limit is repaired without affecting the others: %s', async (_what, record, code) => {
  expect((await api.post(logs(bodyOf(text), record, bodyOf(text)))).json()).toEqual({})
  expect(storedRows(api)).toMatchObject([m, { metadata: { sluiceRepaired: [code] } }, m])
})

describe('an invalid record in JSON', () => {
  it.each(wrongTypes)('is rejected without affecting the others: %s', async (record) => {
    const { partialSuccess } = (
      await api.post(logs(bodyOf(text), record, bodyOf(text)))
    ).json<PartialSuccess>()
    expect(partialSuccess.rejectedLogRecords).toBe('1')
    const reason = /^1 of 3 records were rejected \(wrong_type 1\)\. Record 1: .{5,100}\.$/
    expect(partialSuccess.errorMessage).toMatch(reason)
    expect(storedRows(api)).toMatchObject([m, m])
  })

  it.each([
    ['resource', '"resource":[7],"scopeLogs":[{"logRecords":[{}]}]'],
    ['scope', '"scopeLogs":[{"scope":[7],"logRecords":[{}]}]'],
    ['schema URL', '"schemaUrl":[7],"scopeLogs":[{"logRecords":[{}]}]'],
  ])('is each record of an invalid %s', async (_what, members) => {
    const valid = `{"scopeLogs":[{"logRecords":[${bodyOf(text)}]}]}`
    const response = await api.post(`{"resourceLogs":[{${members}},${valid}]}`)
    expect(response.json<PartialSuccess>().partialSuccess.rejectedLogRecords).toBe('1')
    expect(storedRows(api)).toMatchObject([m])
  })
})
