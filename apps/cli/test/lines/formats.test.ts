import { expect, test } from 'vitest'
import { formats, parseLine } from '../../src/lines/formats.ts'
import { exact, examples, time } from './examples.ts'
import { entriesOf, noDefaults, times } from './support.ts'

test('each format has an example', () => {
  expect(new Set(examples.map(([name]) => name))).toEqual(new Set(formats.map(({ name }) => name)))
})

test.each(examples)('%s: %s', (name, line, entry) => {
  expect(parseLine(line, times)?.format.name).toBe(name)
  expect(entriesOf(line, { defaults: { ...noDefaults, level: 'log' } })).toEqual([entry])
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
  ['<14>Nov 20 10:00:00 web1 nm: <warn> down', { level: 'info', message: '<warn> down' }],
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
