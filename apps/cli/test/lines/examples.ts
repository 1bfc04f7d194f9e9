export const time = '2026-11-20T10:00:00Z'
export const exact = '2026-11-20T10:00:00.123Z'
const micro = '2026-11-20T10:00:00.123456Z'
const logger = 'org.example.Shop'
const low = { level: 'warn', message: 'Low on stock' }

/** A line of each format, and what it becomes. A line without a level gets `log`. */
export const examples: readonly (readonly [format: string, line: string, entry: object])[] = [
  [
    'JSON',
    '{"time":"2026-11-20T10:00:00Z","severity":"WARN","msg":"Low on stock","orderId":7}',
    { timestamp: time, ...low, metadata: { orderId: 7 } },
  ],
  [
    'logfmt, and slog as text',
    'time=2026-11-20T10:00:00Z level=WARN msg="Low on stock" orderId=7',
    { timestamp: time, ...low, metadata: { orderId: 7 } },
  ],
  [
    'syslog, RFC 5424',
    '<165>1 2026-11-20T10:00:00.003Z web1 shop 4711 ID47 [order@1 id="7"] Low on stock',
    {
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
  ],
  [
    'syslog, RFC 3164 or with ISO 8601',
    'Nov 20 10:00:00 web1 sshd[4711]: error: maximum authentication attempts exceeded',
    {
      timestamp: time,
      level: 'error',
      message: 'error: maximum authentication attempts exceeded',
      service: 'sshd',
      metadata: { host: 'web1', pid: '4711' },
    },
  ],
  [
    'syslog, RFC 3164 or with ISO 8601',
    '2026-11-20T10:00:00.123456+01:00 web1 systemd[1]: Started shop.service.',
    {
      timestamp: '2026-11-20T10:00:00.123456+01:00',
      level: 'log',
      message: 'Started shop.service.',
      service: 'systemd',
      metadata: { host: 'web1', pid: '1' },
    },
  ],
  [
    'access log of Apache and nginx',
    '192.0.2.7 - ada [20/Nov/2026:10:00:00 +0100] "GET /orders?id=7 HTTP/1.1" 503 2326 "https://shop.example/" "curl/8"',
    {
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
  ],
  [
    'error log of nginx',
    '2026/11/20 10:00:00 [error] 31#32: *7 open() "/x" failed, client: 192.0.2.7, server: shop.example, request: "GET /x HTTP/1.1"',
    {
      timestamp: time,
      level: 'error',
      message: 'open() "/x" failed, client: 192.0.2.7, server: shop.example, request: "GET /x HTTP/1.1"',
      metadata: { pid: '31', tid: '32', connection: '7' },
    },
  ],
  [
    'error log of Apache',
    '[Fri Nov 20 10:00:00.123456 2026] [proxy:error] [pid 31:tid 140] [client 192.0.2.7:4711] AH00898: Error reading from remote server',
    {
      timestamp: micro,
      level: 'error',
      message: 'AH00898: Error reading from remote server',
      metadata: { module: 'proxy', pid: '31', tid: '140', client: '192.0.2.7:4711' },
    },
  ],
  [
    'klog and glog',
    'W1120 10:00:00.123456    4711 server.go:12] Low on stock',
    { timestamp: micro, ...low, metadata: { tid: '4711', caller: 'server.go:12' } },
  ],
  [
    'Spring Boot',
    '2026-11-20T10:00:00.123+01:00  WARN 4711 --- [shop] [           main] org.example.Shop : Low on stock',
    {
      timestamp: '2026-11-20T10:00:00.123+01:00',
      ...low,
      service: 'shop',
      metadata: { pid: '4711', thread: 'main', logger },
    },
  ],
  [
    'a time and a level, and the thread and logger of Log4j, Logback or Gunicorn',
    '2026-11-20 10:00:00,123 WARN  [main] org.example.Shop - Low on stock',
    {
      timestamp: exact,
      ...low,
      metadata: { thread: 'main', logger },
    },
  ],
  [
    'a time and a level, and the thread and logger of Log4j, Logback or Gunicorn',
    '10:00:00.123 [main] WARN  org.example.Shop - Low on stock',
    {
      ...low,
      metadata: { time: '10:00:00.123', thread: 'main', logger },
    },
  ],
  [
    'logging of Python',
    '2026-11-20 10:00:00,123 - shop.orders - WARNING - Low on stock',
    { timestamp: exact, ...low, metadata: { logger: 'shop.orders' } },
  ],
  [
    'logging of Python, without a format',
    'WARNING:shop.orders:Low on stock',
    { ...low, metadata: { logger: 'shop.orders' } },
  ],
  [
    'a time and a level, and the thread and logger of Log4j, Logback or Gunicorn',
    '2026-11-20T10:00:00.123Z WARN shop::orders: Low on stock',
    { timestamp: exact, ...low, metadata: { logger: 'shop::orders' } },
  ],
  ['a time', '2026-11-20 10:00:00 Low on stock', { timestamp: time, ...low, level: 'log' }],
  ['a level in brackets', '[WARN] Low on stock', low],
  ['a crash', 'panic: no stock', { level: 'log', message: 'panic: no stock' }],
  ['a level', 'WARN: Low on stock', low],
]
