import {
  Double,
  encodeLogs,
  jsonLogs,
  type OtlpAttributes,
  type OtlpLogRecord,
  type OtlpResourceLogs,
} from '@sluice/harness/otlp-logs'
import { limits } from '@sluice/schema'
import { describe, expect, it } from 'vitest'
import { sharedTestApi, storedMetadata, storedRows } from '../../support/shared-api.ts'
import { oneScope, protobuf } from './otlp-api.ts'

const RECEIVED = '2026-11-20 12:00:00.005'
/** `TIME` as it is stored. */
const AT = '2026-11-20 10:00:00.123000'
const TIME = BigInt(Date.UTC(2026, 10, 20, 10, 0, 0, 123)) * 1_000_000n

const ofResource = (attributes: OtlpAttributes): OtlpResourceLogs => ({
  resource: { attributes },
  scopeLogs: [{ logRecords: [{}] }],
})

/** A record with all its fields. */
const all: OtlpLogRecord = {
  timeUnixNano: TIME + 456_789n,
  observedTimeUnixNano: TIME + 1_000_000n,
  severityNumber: 18,
  severityText: 'CRITICAL',
  body: 'Payment was declined',
  attributes: {
    'exception.type': 'DeclinedError',
    'exception.stacktrace': 'DeclinedError\n    at pay',
    'url.full': 'https://shop.example/cart?step=pay',
    'url.path': '/cart',
    cart: 42,
  },
  droppedAttributesCount: 3,
  flags: 1,
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  eventName: 'payment.declined',
}
const scope = { name: 'pay', version: '1.2.3', attributes: { short: true } }
const service = { 'service.name': 'checkout', 'deployment.environment.name': 'production' }
const allLogs: OtlpResourceLogs = {
  resource: { attributes: { ...service, 'host.name': 'web-1' }, droppedAttributesCount: 2 },
  schemaUrl: 'https://opentelemetry.io/schemas/1.37.0',
  scopeLogs: [
    {
      scope: { ...scope, droppedAttributesCount: 1 },
      schemaUrl: 'https://example.com/scope',
      logRecords: [all],
    },
  ],
}

const api = sharedTestApi()

/** Each test runs with both forms of a request, which must make the same rows. */
describe.each(['protobuf', 'JSON'] as const)('a record in %s', (form) => {
  async function send(...resourceLogs: readonly OtlpResourceLogs[]): Promise<Record<string, unknown>[]> {
    const response =
      form === 'JSON'
        ? await api.post(jsonLogs(resourceLogs))
        : await api.post(encodeLogs(resourceLogs), { headers: protobuf })
    expect(response.statusCode).toBe(200)
    expect(response.body).toBe(form === 'JSON' ? '{}' : '')
    return storedRows(api)
  }

  async function sendOne(record: OtlpLogRecord): Promise<Record<string, unknown>> {
    const [row = {}] = await send(...oneScope(record))
    return row
  }

  it('becomes a row with all its parts', async () => {
    const rows = await send(allLogs)
    expect(rows).toEqual([
      {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
        project_id: 'demo',
        received_at: RECEIVED,
        expires_on: expect.any(String) as unknown,
        timestamp: '2026-11-20 10:00:00.123456',
        level: 'error',
        message: 'Payment was declined',
        service: 'checkout',
        environment: 'production',
        source: '',
        url: 'https://shop.example/cart?step=pay',
        pathname: '/cart',
        stack: 'DeclinedError\n    at pay',
        metadata: {
          attributes: { 'exception.type': 'DeclinedError', cart: 42 },
          dropped_attributes_count: 3,
          trace_id: '0af7651916cd43dd8448eb211c80319c',
          span_id: 'b7ad6b7169203331',
          flags: 1,
          event_name: 'payment.declined',
          severity_number: 18,
          severity_text: 'CRITICAL',
          time_unix_nano: String(TIME + 456_789n),
          observed_time_unix_nano: String(TIME + 1_000_000n),
          resource: { 'host.name': 'web-1' },
          resource_schema_url: 'https://opentelemetry.io/schemas/1.37.0',
          resource_dropped_attributes_count: 2,
          scope: { ...scope, schema_url: 'https://example.com/scope', dropped_attributes_count: 1 },
        },
      },
    ])
  })

  it('may have no field, or an id of zeros, which is not kept', async () => {
    for (const record of [{}, { traceId: '0'.repeat(32), spanId: '0'.repeat(16) }])
      expect(await sendOne(record)).toMatchObject({ level: 'log', message: '', timestamp: `${RECEIVED}000` })
    expect(storedMetadata(api)).toEqual([{}, {}])
  })

  it.each<[number, string, string, object]>([
    [5, 'DEBUG', 'debug', {}],
    [9, 'Information', 'info', { severity_text: 'Information' }],
    [13, 'WARN', 'warn', {}],
    [16, '', 'warn', { severity_number: 16 }],
    [21, 'FATAL', 'error', { severity_number: 21, severity_text: 'FATAL' }],
    [0, 'panic', 'error', { severity_text: 'panic' }],
    [0, 'banana', 'log', { severity_text: 'banana' }],
    [25, 'error', 'error', { severity_number: 25 }],
    [-1, '', 'log', { severity_number: -1 }],
    [0, '__proto__', 'log', { severity_text: '__proto__' }],
  ])('with the severity %i "%s" has the level %s', async (severityNumber, severityText, level, metadata) => {
    expect(await sendOne({ severityNumber, severityText })).toMatchObject({ level, metadata })
    expect(storedRows(api)[0]?.['metadata']).toEqual(metadata)
  })

  it.each<[what: string, record: OtlpLogRecord, message: string, metadata: object]>([
    ['a text', { body: 'a\tb\\c\n\u0000"é😀' }, 'a\tb\\c\n\u0000"é😀', {}],
    ['a large integer', { body: -(2n ** 63n) }, '-9223372036854775808', {}],
    ['a double that is not a number', { body: new Double(NaN) }, 'NaN', {}],
    ['bytes', { body: Buffer.from([0, 255, 254]) }, 'AP/+', {}],
    ['a list', { body: ['a', 1, null] }, '["a",1,null]', { body: ['a', 1, null] }],
    ['an object', { body: { a: { b: [] } } }, '{"a":{"b":[]}}', { body: { a: { b: [] } } }],
    ['no value, and an event name', { body: null, eventName: 'login' }, 'login', { event_name: 'login' }],
    ['a text, and an event name', { body: 'm', eventName: 'e' }, 'm', { event_name: 'e' }],
  ])('with %s as its body has a message', async (_what, record, message, metadata) => {
    const row = await sendOne(record)
    expect(row['message']).toBe(message)
    expect(row['metadata']).toEqual(metadata)
  })

  it('keeps values of every type, and names that objects of JavaScript treat specially', async () => {
    const numbers = { int: 7, least: -(2n ** 63n), largest: 2n ** 63n - 1n, safe: 2n ** 53n, double: 0.1 }
    const doubles = { whole: new Double(3), nan: new Double(NaN), infinite: new Double(-Infinity) }
    const others = { yes: true, none: null, bytes: Buffer.from('hi'), list: [1, 'a', [true]] }
    const special = { ['__proto__']: 'p', constructor: { ['__proto__']: null, toString: 't' }, '': 'empty' }
    const attributes = { text: 'é', ...numbers, ...doubles, ...others, ...special } as OtlpAttributes
    await sendOne({ attributes })
    expect(api.queue.rows[0]?.['metadata_text']).toBe(
      '{"attributes":{"text":"é","int":7,"least":-9223372036854775808,' +
        '"largest":9223372036854775807,"safe":9007199254740992,"double":0.1,"whole":3,"nan":"NaN",' +
        '"infinite":"-Infinity","yes":true,"none":null,"bytes":"aGk=","list":[1,"a",[true]],' +
        '"__proto__":"p","constructor":{"__proto__":null,"toString":"t"},"":"empty"}}',
    )
  })

  const LAST = 2n ** 64n - 1n
  const late = { time_unix_nano: String(LAST), observed_time_unix_nano: String(TIME) }

  it.each<
    [what: string, times: readonly [sent: bigint, observed: bigint], timestamp: string, metadata: object]
  >([
    ['microseconds', [TIME + 1_000n, 0n], '2026-11-20 10:00:00.123001', {}],
    ['nanoseconds', [TIME + 1n, 0n], AT, { time_unix_nano: String(TIME + 1n) }],
    ['only an observed time', [0n, TIME], AT, { observed_time_unix_nano: String(TIME) }],
    ['the same observed time', [TIME, TIME], AT, {}],
    ['the 31st of a month', [TIME + 950_400_000_000_000n, 0n], '2026-12-01 10:00:00.123000', {}],
    ['a time of 1970', [1_000n, 0n], '1970-01-01 00:00:00.000001', {}],
    ['a time after 2261', [LAST, 0n], `${RECEIVED}000`, { time_unix_nano: String(LAST) }],
    ['a time after 2261 and an observed one', [LAST, TIME], AT, late],
  ])('with %s', async (_what, [timeUnixNano, observedTimeUnixNano], timestamp, metadata) => {
    const row = await sendOne({ timeUnixNano, observedTimeUnixNano })
    expect(row['timestamp']).toBe(timestamp)
    expect(row['metadata']).toEqual(metadata)
  })

  it.each<[name: string, value: string, environment: string, isKept: boolean]>([
    ['deployment.environment.name', 'staging', 'staging', false],
    ['deployment.environment', 'production', 'production', false],
    ['deployment.environment.name', 'prod', 'production', true],
    ['deployment.environment.name', 'qa', '', true],
  ])('with %s %s has the environment "%s"', async (name, value, environment, isKept) => {
    const [row] = await send(ofResource({ [name]: value }))
    expect(row).toMatchObject({ environment, metadata: isKept ? { resource: { [name]: value } } : {} })
  })

  it.each<[name: string, column: string, charactersMax: number]>([
    ['exception.stacktrace', 'stack', limits.stackCharactersMax],
    ['url.full', 'url', limits.urlCharactersMax],
    ['url.path', 'pathname', limits.pathnameCharactersMax],
  ])('has the attribute %s in the column %s, up to its limit', async (name, column, charactersMax) => {
    const longest = 'é'.repeat(charactersMax - 1) + '😀'
    const row = await sendOne({ attributes: { [name]: longest } })
    expect(row).toMatchObject({ [column]: longest, metadata: {} })
  })

  it.each<[name: string, column: string, value: string | number]>([
    ['url.full', 'url', 'a'.repeat(limits.urlCharactersMax + 1)],
    ['url.path', 'pathname', 'a'.repeat(limits.pathnameCharactersMax + 1)],
    ['url.path', 'pathname', ''],
    ['exception.stacktrace', 'stack', 7],
  ])('keeps the attribute %s in metadata if it does not fit the column %s', async (name, column, value) => {
    const row = await sendOne({ attributes: { [name]: value } })
    expect(row).toMatchObject({ [column]: '', metadata: { attributes: { [name]: value } } })
  })

  it('keeps the name of a service in metadata if it is too long for the column', async () => {
    const longest = '😀'.repeat(limits.serviceCharactersMax)
    const resource = { 'service.name': `${longest}a` }
    expect(await send(ofResource({ 'service.name': longest }), ofResource(resource))).toMatchObject([
      { service: longest, metadata: {} },
      { service: '', metadata: { resource } },
    ])
  })
})
