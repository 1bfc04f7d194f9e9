import { describe, expect, test } from 'vitest'
import { entriesOfText, type ExpectedLine, lostWordsOf, readLine } from './support.ts'

const time = '2026-11-20T10:00:00Z'
const exact = '2026-11-20T10:00:00.123Z'

describe.each<[group: string, lines: [text: string, expected: ExpectedLine][]]>([
  [
    'kernels and systems',
    [
      [
        '[    0.000000] Linux version 5.4.0',
        { message: 'Linux version 5.4.0', metadata: { uptime: '0.000000' } },
      ],
      [
        '[    12.345] (EE) no screens',
        { level: 'error', message: 'no screens', metadata: { uptime: '12.345' } },
      ],
      ['[    12.345] (WW) slow', { level: 'warn', message: 'slow', metadata: { uptime: '12.345' } }],
      [
        '<4>[    1.234567] ata1: slow',
        { level: 'warn', message: 'ata1: slow', metadata: { facility: 'kern', uptime: '1.234567' } },
      ],
      [
        'kern  :err   : [Fri Nov 20 10:00:00 2026] ata1: failed',
        { time, level: 'error', message: 'ata1: failed', metadata: { facility: 'kern' } },
      ],
      [
        'kern  :info  : [    0.000000] Linux version',
        {
          level: 'info',
          message: 'Linux version',
          metadata: { uptime: '0.000000', facility: 'kern' },
        },
      ],
      [
        '2026-11-20T10:00:00,123+00:00 usb 1-1: new device',
        { time: '2026-11-20T10:00:00.123+00:00', message: 'usb 1-1: new device' },
      ],
      [
        'type=SYSCALL msg=audit(1795168800.123:456): arch=c000003e success=yes',
        { time: exact, message: 'arch=c000003e success=yes', metadata: { type: 'SYSCALL', serial: '456' } },
      ],
      [
        'node=web1 type=PATH msg=audit(1795168800.123:456): item=0',
        { time: exact, message: 'item=0', metadata: { host: 'web1', type: 'PATH', serial: '456' } },
      ],
      [
        '2026-11-20 10:00:00,123 - util.py[WARNING]: failed to run',
        { time: exact, level: 'warn', message: 'failed to run', metadata: { logger: 'util.py' } },
      ],
      [
        'Fri 2026-11-20 10:00:00 UTC host systemd[1]: Started.',
        { time, service: 'systemd', message: 'Started.', metadata: { host: 'host', pid: '1' } },
      ],
      [
        '1795168800.123456 host systemd[1]: Started.',
        {
          time: '2026-11-20T10:00:00.123456Z',
          service: 'systemd',
          message: 'Started.',
          metadata: { host: 'host', pid: '1' },
        },
      ],
      [
        '2026-11-20 10:00:00.123+0100 0x1a2b Error 0x0 123 0 kernel: (disk) slow',
        {
          time: '2026-11-20T10:00:00.123+0100',
          level: 'error',
          service: 'kernel',
          message: '(disk) slow',
          metadata: { pid: '123', thread: '0x1a2b' },
        },
      ],
      [
        '11/20/2026 10:00:00 AM,Error,Service Control Manager,7000',
        { time, level: 'error', message: 'Service Control Manager,7000' },
      ],
      [
        'Information\t11/20/2026 10:00:00 AM\tService\t7036',
        { time, level: 'info', message: 'Service\t7036' },
      ],
    ],
  ],
  [
    'networks',
    [
      [
        '20-Nov-2026 10:00:00.123 general: info: zone loaded',
        { time: exact, level: 'info', message: 'zone loaded', metadata: { logger: 'general' } },
      ],
      [
        '20-Nov-2026 10:00:00.123 dnssec: debug 3: validating',
        { time: exact, level: 'debug', message: 'validating', metadata: { logger: 'dnssec' } },
      ],
      [
        '[1795168800] unbound[1234:0] error: could not bind',
        {
          time,
          level: 'error',
          service: 'unbound',
          message: 'could not bind',
          metadata: { pid: '1234', tid: '0' },
        },
      ],
      [
        '[2026-11-20 10:00:00.123] E [MSGID: 1] [x.c:1:f] 0-x: failed',
        { time: exact, level: 'error', message: '[MSGID: 1] [x.c:1:f] 0-x: failed' },
      ],
      [
        '*Nov 20 10:00:00.123: %SYS-5-CONFIG_I: Configured from console',
        {
          time: exact,
          level: 'info',
          message: '%SYS-5-CONFIG_I: Configured from console',
          metadata: { originalLevel: 'notice' },
        },
      ],
      [
        '000123: Nov 20 10:00:00.123 UTC: %LINEPROTO-3-UPDOWN: down',
        { time: exact, level: 'error', message: '%LINEPROTO-3-UPDOWN: down' },
      ],
      [
        '<187>29: Nov 20 10:00:00.123: %LINK-3-UPDOWN: down',
        { time: exact, level: 'error', message: '%LINK-3-UPDOWN: down', metadata: { facility: 'local7' } },
      ],
      [
        'Nov 20 2026 10:00:00: %ASA-4-106023: Deny tcp',
        { time, level: 'warn', message: '%ASA-4-106023: Deny tcp' },
      ],
      [
        `${'7'.repeat(64)} files [20/Nov/2026:10:00:00 +0000] 192.0.2.3 - "GET /a HTTP/1.1" 200`,
        {
          time: '2026-11-20T10:00:00+0000',
          message: '192.0.2.3 - "GET /a HTTP/1.1" 200',
          metadata: { owner: '7'.repeat(64), bucket: 'files' },
        },
      ],
    ],
  ],
  [
    'servers and tools',
    [
      [
        '1234:S 20 Nov 10:00:00.123 - DB 0: 1 keys',
        {
          time: exact,
          level: 'debug',
          message: 'DB 0: 1 keys',
          metadata: { originalLevel: 'verbose', pid: '1234', role: 'replica' },
        },
      ],
      [
        '[1] 2026/11/20 10:00:00.123 [ERR] lost',
        { time: exact, level: 'error', message: 'lost', metadata: { pid: '1' } },
      ],
      [
        '[Nest] 1234  - 11/20/2026, 10:00:00 AM   ERROR [Orders] failed',
        {
          time,
          level: 'error',
          message: 'failed',
          metadata: { thread: 'Orders', context: 'Nest', pid: '1234' },
        },
      ],
      [
        '[Nest] 1234  - 11/20/2026, 10:00:00 AM     LOG [Orders] started',
        {
          time,
          level: 'log',
          message: 'started',
          metadata: { thread: 'Orders', context: 'Nest', pid: '1234' },
        },
      ],
      ['WARN[2026-11-20T10:00:00Z] low on stock', { time, level: 'warn', message: 'low on stock' }],
      ['10:00AM ERR failed', { level: 'error', message: 'failed', metadata: { time: '10:00AM' } }],
      ['    2026/11/20 10:00:00 [WARN] agent: slow', { time, level: 'warn', message: 'agent: slow' }],
      [
        '2026-11-20T10:00:00.123Z [shop] warn: low',
        { time: exact, level: 'warn', message: 'low', metadata: { thread: 'shop' } },
      ],
      [
        '2026-11-20T10:00:00.123Z ##[error]exit code 1',
        { time: exact, level: 'error', message: 'exit code 1' },
      ],
      [
        '[20Nov2026 10:00:00.123] [main/WARN] slow',
        { time: exact, level: 'warn', message: 'slow', metadata: { thread: 'main' } },
      ],
      ['npm ERR! code ENOENT', { level: 'error', service: 'npm', message: 'code ENOENT' }],
      [
        '[20-Nov-2026 10:00:00 Europe/Berlin] PHP Warning:  low',
        { time: '2026-11-20T10:00:00+01:00', level: 'warn', message: 'low' },
      ],
      [
        '2026-11-20 10:00:00.123  1702-2395/com.example E/Shop: failed',
        {
          time: exact,
          level: 'error',
          message: 'failed',
          metadata: { pid: '1702', tid: '2395', package: 'com.example', logger: 'Shop' },
        },
      ],
      [
        '2026-11-20 10:00:00.123  1702-2395  Shop                    com.example                          W  low',
        {
          time: exact,
          level: 'warn',
          message: 'low',
          metadata: { pid: '1702', tid: '2395', package: 'com.example', logger: 'Shop' },
        },
      ],
    ],
  ],
  [
    'levels behind the prefix of another program',
    [
      [
        'Nov 20 10:00:00 web1 shop[123]: ERROR failed',
        {
          time,
          level: 'error',
          service: 'shop',
          message: 'ERROR failed',
          metadata: { host: 'web1', pid: '123' },
        },
      ],
      [
        'Nov 20 10:00:00 web1 shop: {"level":"warn","msg":"low"}',
        {
          time,
          level: 'warn',
          service: 'shop',
          message: '{"level":"warn","msg":"low"}',
          metadata: { host: 'web1' },
        },
      ],
      [
        'Nov 20 10:00:00 web1 dockerd: time="2026-11-20" level=error msg=x',
        {
          time,
          level: 'error',
          service: 'dockerd',
          message: 'time="2026-11-20" level=error msg=x',
          metadata: { host: 'web1' },
        },
      ],
      [
        'Nov 20 10:00:00 web1 shop: the level=error of it',
        { time, service: 'shop', message: 'the level=error of it', metadata: { host: 'web1' } },
      ],
      [
        '2026-11-20 10:00:00 web1 shop[123]: [WARN] low',
        {
          time,
          level: 'warn',
          service: 'shop',
          message: '[WARN] low',
          metadata: { host: 'web1', pid: '123' },
        },
      ],
      [
        '2026-11-20T10:00:00.123Z pid=1 tid=a class=Mail INFO: start',
        { time: exact, level: 'info', message: 'pid=1 tid=a class=Mail INFO: start' },
      ],
      [
        '[11/20/26 10:00:00:123 UTC] 00000001 WsServerImpl  W   CODE: low',
        {
          time: exact,
          level: 'warn',
          message: 'CODE: low',
          metadata: { thread: '00000001', logger: 'WsServerImpl' },
        },
      ],
      [
        '####<Nov 20, 2026 10:00:00 AM UTC> <Error> <Server> failed',
        { time, level: 'error', message: '<Server> failed' },
      ],
      [
        '192.0.2.7:5555 [20/Nov/2026:10:00:00.123] web shop/srv1 0/0/0/1/1 503 123 - - ----',
        {
          time: exact,
          level: 'error',
          message: 'web shop/srv1 0/0/0/1/1 503 123 - - ----',
          metadata: { status: 503, bytes: 123, client: '192.0.2.7', clientPort: '5555' },
        },
      ],
      ['11/20-10:00:00.123 [**] [1:2:3] scan [**]', { time: exact, message: '[**] [1:2:3] scan [**]' }],
    ],
  ],
  [
    'unusual times',
    [
      ['(2026-11-20 10:00:00) ERROR failed', { time, level: 'error', message: 'failed' }],
      [
        '2026-11-20 10:00:00 PM ERROR failed',
        { time: '2026-11-20T22:00:00Z', level: 'error', message: 'failed' },
      ],
      [
        '2026-11-20 10:00:00 +0000 UTC ERROR failed',
        { time: '2026-11-20T10:00:00+0000', level: 'error', message: 'failed' },
      ],
      [
        '2026-11-20 10:00:00.123 +0100 CET m=+0.1 failed',
        { time: '2026-11-20T10:00:00.123+0100', message: 'failed' },
      ],
      [
        '2026-11-20 10:00:00 +0100 INFO started',
        { time: '2026-11-20T10:00:00+0100', level: 'info', message: 'started' },
      ],
      ['1795168800 ERROR failed', { time, level: 'error', message: 'failed' }],
      ['INFO|2026-11-20 10:00:00|started', { time, level: 'info', message: 'started' }],
      ['2026-11-20 10:00:00;INFO;started', { time, level: 'info', message: 'started' }],
      [
        '[E 2026-11-20 10:00:00.123 ServerApp] failed',
        { time: exact, level: 'error', message: 'failed', metadata: { logger: 'ServerApp' } },
      ],
      [
        '[W 261120 10:00:00 web:1971] 404 GET',
        { time, level: 'warn', message: '404 GET', metadata: { logger: 'web:1971' } },
      ],
      [
        '[I 10:00:00.123 LabApp] started',
        { level: 'info', message: 'started', metadata: { time: '10:00:00.123', logger: 'LabApp' } },
      ],
    ],
  ],
  [
    'texts that only look like a format',
    [
      ['5 error messages were found', { message: '5 error messages were found' }],
      ['  2026-11-20 10:00:00 | 7 | paid', { message: '  2026-11-20 10:00:00 | 7 | paid' }],
      ['20 Nov was a Friday', { message: '20 Nov was a Friday' }],
      ['[1] is the first', { message: '[1] is the first' }],
      ['* a point of a list', { message: '* a point of a list' }],
      ['=INFO', { message: '=INFO' }],
      ['20-Nov-2026 10:00:00 Nowhere/Else x', { time, message: 'Nowhere/Else x' }],
    ],
  ],
])('%s', (_group, lines) => {
  test.each(lines)('%s', (text, expected) => {
    expect(readLine(text)).toEqual(expected)
    expect(lostWordsOf(text)).toEqual([])
  })
})

test('the reports of Erlang have their message in the next line', () => {
  const text = '=CRASH REPORT==== 20-Nov-2026::10:00:00 ===\nclosing connection\n  reason'
  expect(entriesOfText(text)).toEqual([
    {
      timestamp: time,
      level: 'error',
      message: 'closing connection\n  reason',
      metadata: { originalLevel: 'CRASH' },
    },
  ])
})

test('no text is lost of a line that only looks like a report of Erlang, or one of W3C', () => {
  expect(entriesOfText('=INFO REPORT==== 20-Nov-2026::10:00:00 === text\nnext')).toEqual([
    { level: 'info', message: '=INFO REPORT==== 20-Nov-2026::10:00:00 === text' },
    { level: 'info', message: 'next' },
  ])
  const [, line] = entriesOfText(
    '#Fields: date time cs-method cs-uri-stem sc-status\n20261120-10:00:00:123|Step|300|a b c d e',
  )
  expect(line).toMatchObject({ message: 'a b c d e', metadata: { logger: 'Step' } })
})

test('the lines of a log of npm have levels after its first line', () => {
  const text = '0 verbose cli /usr/bin/node\n1 info using npm@9.0.0\n2 error code ENOENT'
  expect(entriesOfText(text, { level: 'warn' }).map((entry) => (entry as { level: string }).level)).toEqual([
    'debug',
    'info',
    'error',
  ])
})
