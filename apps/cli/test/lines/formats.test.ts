import { expect, test } from 'vitest'
import { formats, parseLine } from '../../src/lines/formats.ts'
import { entriesOf, noDefaults, times } from './support.ts'

const time = '2026-11-20T10:00:00Z'
const exact = '2026-11-20T10:00:00.123Z'
const micro = '2026-11-20T10:00:00.123456Z'
const logger = 'org.example.Shop'
const low = { level: 'warn', message: 'Low on stock' }

/** What the example of each format becomes. */
const entries: Readonly<Record<string, object>> = {
  JSON: { timestamp: time, ...low, metadata: { orderId: 7 } },
  'logfmt, and slog as text': { timestamp: time, ...low, metadata: { orderId: 7 } },
  'syslog, RFC 5424': {
    timestamp: '2026-11-20T10:00:00.003Z',
    level: 'info',
    message: low.message,
    service: 'shop',
    metadata: {
      host: 'web1',
      pid: '4711',
      messageId: 'ID47',
      originalLevel: 'notice',
      facility: 'local4',
      structuredData: '[order@1 id="7"]',
    },
  },
  'syslog, RFC 3164': {
    timestamp: time,
    level: 'error',
    message: 'error: maximum authentication attempts exceeded',
    service: 'sshd',
    metadata: { host: 'web1', pid: '4711' },
  },
  'syslog with ISO 8601': {
    timestamp: '2026-11-20T10:00:00.123456+01:00',
    level: 'log',
    message: 'Started shop.service.',
    service: 'systemd',
    metadata: { host: 'web1', pid: '1' },
  },
  'access log of Apache and nginx': {
    timestamp: '2026-11-20T10:00:00+0100',
    level: 'error',
    message: '"GET /orders?id=7 HTTP/1.1" 503 2326 "https://shop.example/" "curl/8"',
    pathname: '/orders',
    metadata: {
      client: '192.0.2.7',
      user: 'ada',
      method: 'GET',
      protocol: 'HTTP/1.1',
      query: 'id=7',
      status: 503,
      bytes: 2326,
      referrer: 'https://shop.example/',
      userAgent: 'curl/8',
    },
  },
  'error log of nginx': {
    timestamp: time,
    level: 'error',
    message: 'open() "/x" failed, client: 192.0.2.7, server: shop.example, request: "GET /x HTTP/1.1"',
    metadata: { pid: '31', tid: '32', connection: '7' },
  },
  'error log of Apache': {
    timestamp: micro,
    level: 'error',
    message: 'AH00898: Error reading from remote server',
    metadata: { module: 'proxy', pid: '31', tid: '140', client: '192.0.2.7:4711' },
  },
  'klog and glog': { timestamp: micro, ...low, metadata: { tid: '4711', caller: 'server.go:12' } },
  'Spring Boot': {
    timestamp: '2026-11-20T10:00:00.123+01:00',
    ...low,
    service: 'shop',
    metadata: { pid: '4711', thread: 'main', logger },
  },
  'Log4j and Logback: level, thread, logger': {
    timestamp: exact,
    ...low,
    metadata: { thread: 'main', logger },
  },
  'Log4j and Logback: thread, level, logger; Gunicorn': {
    ...low,
    metadata: { time: '10:00:00.123', thread: 'main', logger },
  },
  'logging of Python': { timestamp: exact, ...low, metadata: { logger: 'shop.orders' } },
  'logging of Python, without a format': { ...low, metadata: { logger: 'shop.orders' } },
  'a time and a level': { timestamp: exact, ...low, metadata: { logger: 'shop::orders' } },
  'a time': { timestamp: time, ...low, level: 'log' },
  'a level in brackets': low,
  'a crash': { level: 'log', message: 'panic: no stock' },
  'a level': low,
}

test.each(formats)('the example has the format: $name', ({ name, example }) => {
  expect(parseLine(example, times)?.format.name).toBe(name)
  expect(entriesOf(example, { defaults: { ...noDefaults, level: 'log' } })).toEqual([entries[name]])
})

test.each<[line: string, expected: object]>([
  // syslog
  [
    "<34>Oct 11 22:14:15 web1 su: 'su root' failed",
    {
      level: 'error',
      service: 'su',
      metadata: { facility: 'auth', host: 'web1', originalLevel: 'critical' },
    },
  ],
  ['Nov 20 10:00:00 web1 nm[7]: <warn>  [1.2] down', { level: 'warn', message: '<warn>  [1.2] down' }],
  ['Nov 20 10:00:00 web1 last message repeated 2 times', { message: 'last message repeated 2 times' }],
  ['<14>1 - web1 shop - - - \uFEFFLow', { message: 'Low', service: 'shop', metadata: { facility: 'user' } }],
  [`<14>1 - h a 1 m ${String.raw`[x@1 a="]\"b"][y@1]`} Low`, { message: 'Low' }],
  // Web servers
  [
    String.raw`shop.example:443 2001:db8::7 - - [20/Nov/2026:10:00:00 +0000] "\x16\x03" 400 -`,
    { level: 'warn', metadata: { server: 'shop.example:443', client: '2001:db8::7', status: 400 } },
  ],
  [
    '192.0.2.7 - "a b" [20/Nov/2026:10:00:00 +0000] "GET https://a.example/ HTTP/1.1" 200 7',
    { level: 'info', metadata: { status: 200, bytes: 7 } },
  ],
  // Java
  [
    '2026-11-20 10:00:00,123 INFO [main] org.example.Shop: Started: x',
    { message: 'Started: x', metadata: { thread: 'main', logger: 'org.example.Shop' } },
  ],
  [
    '2026-11-20 10:00:00.123 ERROR 4711 --- [nio-8080-exec-1] o.e.OrderController         : failed',
    { level: 'error', metadata: { thread: 'nio-8080-exec-1', logger: 'o.e.OrderController' } },
  ],
  ['[2026-11-20 10:00:00 +0000] [4711] [INFO] Booting', { level: 'info', metadata: { pid: '4711' } }],
  // A time and a level in other layouts
  ['2026-11-20T10:00:00.123Z [error]: failed', { timestamp: exact, level: 'error', message: 'failed' }],
  ['2026-11-20 10:00:00 -05:00 [ERR] failed', { timestamp: '2026-11-20T10:00:00-05:00', level: 'error' }],
  ['[2026-11-20 10:00:00] FATAL failed', { level: 'error', metadata: { originalLevel: 'FATAL' } }],
  ['2026-11-20 10:00:00 UTC | Warning | low', { timestamp: time, message: 'Warning | low' }],
  ['2026/11/20 10:00:00 main.go:23: low', { timestamp: time, message: 'main.go:23: low' }],
  ['2026-11-20 10:00:00 -12 degrees', { timestamp: time, message: '-12 degrees' }],
  ['\u001B[32m2026-11-20 10:00:00\u001B[0m \u001B[33mWARN\u001B[0m low', { level: 'warn', message: 'low' }],
  ['INFO:     127.0.0.1:51234 - "GET /" 200', { level: 'info', message: '127.0.0.1:51234 - "GET /" 200' }],
  // logfmt
  [
    'level=info msg="a \\"b\\"\\n" n=7 big=12345678901234567890 empty=',
    { message: 'a "b"\n', metadata: { n: 7, big: '12345678901234567890', empty: '' } },
  ],
])('%s', (line, expected) => {
  expect(entriesOf(line)).toMatchObject([expected])
})

const unknown =
  'Error: connect ECONNREFUSED|ERROR in the middle|May the force be with you|[config] read|10.0.0.1 is down|' +
  '2026-11-20 10:00:00abc|2026-02-30 10:00:00 x|2026-11-20 25:00:00 x|Nov 31 10:00:00 web1 x|a=1 b=2|' +
  'level=info level=warn msg=a|10:00:00 is the time'
test.each(unknown.split('|'))('is no known format: %s', (line) => {
  expect(entriesOf(line)).toEqual([{ level: 'info', message: line }])
})

test.each(['Got ERROR from the server', 'Error while reading', 'alert the team'])(
  'has a time and no level: %s',
  (message) => {
    expect(entriesOf(`2026-11-20 10:00:00 ${message}`)).toEqual([{ timestamp: time, level: 'info', message }])
  },
)

test('a very long value is only in the message', () => {
  const request = `"GET /a?${'a=1&'.repeat(1_900)} HTTP/1.1" 200 7 "${'r'.repeat(9_000)}" "x"`
  const [entry] = entriesOf(`192.0.2.7 - - [20/Nov/2026:10:00:00 +0000] ${request}`)
  expect(entry).toMatchObject({ pathname: '/a', message: request, metadata: { status: 200, userAgent: 'x' } })
  expect(entry).not.toHaveProperty('metadata.referrer')
  const data = `[x@1 a="${'y'.repeat(9_000)}"]`
  expect(entriesOf(`<14>1 2026-11-20T10:00:00Z h a 1 m ${data} Low`)).toMatchObject([
    { message: `${data} Low` },
  ])
})
