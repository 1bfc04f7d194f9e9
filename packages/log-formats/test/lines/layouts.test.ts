import { describe, expect, test } from 'vitest'
import { type ExpectedLine, lostWordsOf, readLine } from './support.ts'

/** The expectations were written by hand from the documentation of each format, or from lines of the program itself. */
describe.each<[group: string, lines: [text: string, expected: ExpectedLine][]]>([
  [
    'Java',
    [
      [
        '2026-11-20 10:00:00,123 INFO  [main] org.example.Shop - Started in 3 s',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'info',
          message: 'Started in 3 s',
          metadata: { thread: 'main', logger: 'org.example.Shop' },
        },
      ],
      [
        '10:00:00.123 [main] WARN  c.e.Shop - Low on stock',
        {
          level: 'warn',
          message: 'Low on stock',
          metadata: { time: '10:00:00.123', thread: 'main', logger: 'c.e.Shop' },
        },
      ],
      [
        '2026-11-20 10:00:00.123 ERROR 4711 --- [nio-8080-exec-1] o.e.shop.OrderController         : Order 7 failed',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'error',
          message: 'Order 7 failed',
          metadata: { pid: '4711', thread: 'nio-8080-exec-1', logger: 'o.e.shop.OrderController' },
        },
      ],
      [
        '2026-11-20T10:00:00.123+01:00  INFO 4711 --- [shop] [           main] org.example.Shop : Started',
        {
          time: '2026-11-20T10:00:00.123+01:00',
          level: 'info',
          service: 'shop',
          message: 'Started',
          metadata: { pid: '4711', thread: 'main', logger: 'org.example.Shop' },
        },
      ],
      [
        '[2026-11-20 10:00:00,123] INFO Registered broker 0 at path /brokers/ids/0 (kafka.zk.KafkaZkClient)',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'info',
          message: 'Registered broker 0 at path /brokers/ids/0 (kafka.zk.KafkaZkClient)',
        },
      ],
      [
        'INFO  [main] 2026-11-20 10:00:00,123 StorageService.java:1521 - JOINING: Finish joining ring',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'info',
          message: 'JOINING: Finish joining ring',
          metadata: { thread: 'main', caller: 'StorageService.java:1521' },
        },
      ],
      [
        '[2026-11-20T10:00:00,123][WARN ][o.e.d.z.ZenDiscovery     ] [node-1] not enough master nodes',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'warn',
          message: '[node-1] not enough master nodes',
          metadata: { logger: 'o.e.d.z.ZenDiscovery' },
        },
      ],
      [
        '10:00:00,123 INFO  [org.jboss.as] (MSC service thread 1-1) WFLYSRV0049: starting',
        {
          level: 'info',
          message: 'WFLYSRV0049: starting',
          metadata: { time: '10:00:00,123', logger: 'org.jboss.as', thread: 'MSC service thread 1-1' },
        },
      ],
      [
        '20-Nov-2026 10:00:00.123 SEVERE [main] org.apache.catalina.startup.Catalina.start Cannot start',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'error',
          message: 'org.apache.catalina.startup.Catalina.start Cannot start',
          metadata: { originalLevel: 'SEVERE', thread: 'main' },
        },
      ],
      [
        '2026-11-20 10:00:00.123+0000 [id=22]\tINFO\thudson.WebAppMain$3#run: Jenkins is fully up',
        {
          time: '2026-11-20T10:00:00.123+0000',
          level: 'info',
          message: 'Jenkins is fully up',
          metadata: { thread: 'id=22', logger: 'hudson.WebAppMain$3#run' },
        },
      ],
      [
        '2026-11-20 10:00:00,123 | INFO  | Apache ActiveMQ is starting | org.apache.activemq | main',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'info',
          message: 'Apache ActiveMQ is starting | org.apache.activemq | main',
        },
      ],
      [
        '[11/20/26 10:00:00:123 UTC] 00000001 WsServerImpl  A   WSVR0001I: Server open for e-business',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'info',
          message: 'WSVR0001I: Server open for e-business',
          metadata: { thread: '00000001', logger: 'WsServerImpl', originalLevel: 'audit' },
        },
      ],
      [
        '[2026-11-20T10:00:00.123+0000][1.234s][info][gc] GC(0) Pause Young 24M->4M(256M) 3.2ms',
        {
          time: '2026-11-20T10:00:00.123+0000',
          level: 'info',
          message: 'GC(0) Pause Young 24M->4M(256M) 3.2ms',
          metadata: { uptime: '1.234s', thread: 'gc' },
        },
      ],
      [
        '[10:00:00] [Server thread/INFO]: Done (3.5s)!',
        { level: 'info', message: 'Done (3.5s)!', metadata: { time: '10:00:00', thread: 'Server thread' } },
      ],
    ],
  ],
  [
    'Python',
    [
      [
        '2026-11-20 10:00:00,123 - shop.orders - ERROR - Payment failed: timeout',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'error',
          message: 'Payment failed: timeout',
          metadata: { logger: 'shop.orders' },
        },
      ],
      [
        '2026-11-20 10:00:00,123 - root - INFO - Started',
        { time: '2026-11-20T10:00:00.123Z', level: 'info', message: 'Started', metadata: { logger: 'root' } },
      ],
      [
        'WARNING:shop.orders:Slow query',
        { level: 'warn', message: 'Slow query', metadata: { logger: 'shop.orders' } },
      ],
      [
        '[2026-11-20 10:00:00 +0000] [4711] [INFO] Booting worker with pid: 4712',
        {
          time: '2026-11-20T10:00:00+0000',
          level: 'info',
          message: 'Booting worker with pid: 4712',
          metadata: { pid: '4711' },
        },
      ],
      [
        '[2026-11-20 10:00:00,123: WARNING/MainProcess] consumer: Connection lost',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'warn',
          message: 'consumer: Connection lost',
          metadata: { thread: 'MainProcess' },
        },
      ],
      [
        '[2026-11-20T10:00:00.123+0000] {taskinstance.py:1157} INFO - Dependencies all met',
        {
          time: '2026-11-20T10:00:00.123+0000',
          level: 'info',
          message: 'Dependencies all met',
          metadata: { caller: 'taskinstance.py:1157' },
        },
      ],
      [
        '2026-11-20 10:00:00.123 | INFO     | shop.orders:create:42 - Order created',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'info',
          message: 'Order created',
          metadata: { logger: 'shop.orders:create:42' },
        },
      ],
      [
        '2026-11-20 10:00:00 [info     ] order created                  id=7',
        { time: '2026-11-20T10:00:00Z', level: 'info', message: 'order created                  id=7' },
      ],
      [
        'INFO:     127.0.0.1:51234 - "GET / HTTP/1.1" 200 OK',
        { level: 'info', message: '127.0.0.1:51234 - "GET / HTTP/1.1" 200 OK' },
      ],
      [
        '2026-11-20 10:00:00,123 fail2ban.actions        [4711]: NOTICE  [sshd] Ban 192.0.2.7',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'info',
          message: 'Ban 192.0.2.7',
          metadata: { logger: 'fail2ban.actions', pid: '4711', originalLevel: 'NOTICE', thread: 'sshd' },
        },
      ],
      [
        '2026-11-20 10:00:00.123456: I tensorflow/core/platform/cpu_feature_guard.cc:142] Your CPU supports AVX2',
        {
          time: '2026-11-20T10:00:00.123456Z',
          level: 'info',
          message: 'Your CPU supports AVX2',
          metadata: { caller: 'tensorflow/core/platform/cpu_feature_guard.cc:142' },
        },
      ],
    ],
  ],
  [
    'Go, Rust, C++ and Ruby',
    [
      [
        '2026/11/20 10:00:00 main.go:23: listening on :8080',
        { time: '2026-11-20T10:00:00Z', message: 'main.go:23: listening on :8080' },
      ],
      [
        '2026/11/20 10:00:00 INFO order created id=7',
        { time: '2026-11-20T10:00:00Z', level: 'info', message: 'order created id=7' },
      ],
      [
        'I1120 10:00:00.123456    4711 server.go:12] Serving on :443',
        {
          time: '2026-11-20T10:00:00.123456Z',
          level: 'info',
          message: 'Serving on :443',
          metadata: { tid: '4711', caller: 'server.go:12' },
        },
      ],
      [
        'E20261120 10:00:00.123456  4711 shop.cc:99] Check failed',
        {
          time: '2026-11-20T10:00:00.123456Z',
          level: 'error',
          message: 'Check failed',
          metadata: { tid: '4711', caller: 'shop.cc:99' },
        },
      ],
      [
        'W261120 10:00:00.123456 123 kv/server.go:7 ⋮ [n1] 12  slow heartbeat',
        {
          time: '2026-11-20T10:00:00.123456Z',
          level: 'warn',
          message: '[n1] 12  slow heartbeat',
          metadata: { tid: '123', caller: 'kv/server.go:7' },
        },
      ],
      [
        '2026-11-20T10:00:00.123Z\tERROR\tshop/orders.go:12\torder failed\t{"id": 7}',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'error',
          message: 'order failed\t{"id": 7}',
          metadata: { caller: 'shop/orders.go:12' },
        },
      ],
      [
        '2026-11-20T10:00:00.123Z [WARN]  agent.server: no leader: error="timeout"',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'warn',
          message: 'no leader: error="timeout"',
          metadata: { logger: 'agent.server' },
        },
      ],
      [
        '2026-11-20 10:00:00.123456 I | etcdserver: published',
        { time: '2026-11-20T10:00:00.123456Z', level: 'info', message: 'etcdserver: published' },
      ],
      [
        '[2026/11/20 10:00:00.123 +00:00] [INFO] [server.go:12] ["server is running"] [port=4000]',
        {
          time: '2026-11-20T10:00:00.123+00:00',
          level: 'info',
          message: '["server is running"] [port=4000]',
          metadata: { logger: 'server.go:12' },
        },
      ],
      [
        '[2026-11-20T10:00:00Z WARN  shop::orders] stock is low',
        {
          time: '2026-11-20T10:00:00Z',
          level: 'warn',
          message: 'stock is low',
          metadata: { logger: 'shop::orders' },
        },
      ],
      [
        '2026-11-20T10:00:00.123456Z  INFO shop::orders: order created id=7',
        {
          time: '2026-11-20T10:00:00.123456Z',
          level: 'info',
          message: 'order created id=7',
          metadata: { logger: 'shop::orders' },
        },
      ],
      [
        '[2026-11-20 10:00:00.123] [shop] [warning] stock is low',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'warn',
          message: 'stock is low',
          metadata: { thread: 'shop' },
        },
      ],
      [
        '[1120/100000.123456:ERROR:gpu_process_host.cc(967)] GPU process exited',
        {
          time: '2026-11-20T10:00:00.123456Z',
          level: 'error',
          message: 'GPU process exited',
          metadata: { caller: 'gpu_process_host.cc(967)' },
        },
      ],
      [
        'W, [2026-11-20T10:00:00.123456 #4711]  WARN -- shop: stock is low',
        {
          time: '2026-11-20T10:00:00.123456Z',
          level: 'warn',
          service: 'shop',
          message: 'stock is low',
          metadata: { pid: '4711' },
        },
      ],
    ],
  ],
  [
    '.NET, JavaScript, PHP and Erlang',
    [
      [
        '2026-11-20 10:00:00.123 +01:00 [INF] Now listening on: http://localhost:5000',
        {
          time: '2026-11-20T10:00:00.123+01:00',
          level: 'info',
          message: 'Now listening on: http://localhost:5000',
        },
      ],
      [
        '[10:00:00 FTL] Terminated',
        { level: 'error', message: 'Terminated', metadata: { time: '10:00:00', originalLevel: 'FTL' } },
      ],
      [
        '2026-11-20 10:00:00.1234|WARN|Shop.Orders|stock is low',
        {
          time: '2026-11-20T10:00:00.1234Z',
          level: 'warn',
          message: 'stock is low',
          metadata: { logger: 'Shop.Orders' },
        },
      ],
      [
        '2026-11-20 10:00:00,123 [12] ERROR Shop.Orders - failed',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'error',
          message: 'failed',
          metadata: { pid: '12', logger: 'Shop.Orders' },
        },
      ],
      [
        '2026-11-20T10:00:00.123Z [error]: failed',
        { time: '2026-11-20T10:00:00.123Z', level: 'error', message: 'failed' },
      ],
      ['warn: stock is low', { level: 'warn', message: 'stock is low' }],
      [
        '[2026-11-20 10:00:00] production.ERROR: Undefined index: id {"user":7} []',
        {
          time: '2026-11-20T10:00:00Z',
          level: 'error',
          message: 'Undefined index: id {"user":7} []',
          metadata: { logger: 'production' },
        },
      ],
      [
        '[20-Nov-2026 10:00:00 UTC] PHP Fatal error:  Uncaught Exception: no in /a.php:3',
        {
          time: '2026-11-20T10:00:00Z',
          level: 'error',
          message: 'Uncaught Exception: no in /a.php:3',
          metadata: { originalLevel: 'Fatal error' },
        },
      ],
      [
        '[20-Nov-2026 10:00:00] NOTICE: fpm is running, pid 1',
        {
          time: '2026-11-20T10:00:00Z',
          level: 'info',
          message: 'fpm is running, pid 1',
          metadata: { originalLevel: 'NOTICE' },
        },
      ],
      [
        '2026-11-20 10:00:00.123456+00:00 [info] <0.230.0> Server startup complete',
        {
          time: '2026-11-20T10:00:00.123456+00:00',
          level: 'info',
          message: '<0.230.0> Server startup complete',
        },
      ],
      ['10:00:00.123 [info] GET /', { level: 'info', message: 'GET /', metadata: { time: '10:00:00.123' } }],
    ],
  ],
  [
    'databases',
    [
      [
        '2026-11-20 10:00:00.123 CET [4711] shop@orders ERROR:  relation "x" does not exist at character 15',
        {
          time: '2026-11-20T10:00:00.123+01:00',
          level: 'error',
          message: 'relation "x" does not exist at character 15',
          metadata: { pid: '4711', user: 'shop', database: 'orders' },
        },
      ],
      [
        '2026-11-20 10:00:00 UTC:192.0.2.7(5432):shop@orders:[4711]:LOG:  duration: 12.3 ms',
        {
          time: '2026-11-20T10:00:00Z',
          level: 'log',
          message: 'duration: 12.3 ms',
          metadata: {
            pid: '4711',
            user: 'shop',
            database: 'orders',
            client: '192.0.2.7',
            clientPort: '5432',
          },
        },
      ],
      [
        '2026-11-20T10:00:00.123456Z 0 [System] [MY-010931] [Server] /usr/sbin/mysqld: ready for connections.',
        {
          time: '2026-11-20T10:00:00.123456Z',
          level: 'info',
          message: '/usr/sbin/mysqld: ready for connections.',
          metadata: { thread: '0', originalLevel: 'System', code: 'MY-010931', logger: 'Server' },
        },
      ],
      [
        '161120 10:00:00 [Warning] option is deprecated',
        { time: '2016-11-20T10:00:00Z', level: 'warn', message: 'option is deprecated' },
      ],
      [
        '4711:M 20 Nov 2026 10:00:00.123 # Server initialized',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'warn',
          message: 'Server initialized',
          metadata: { pid: '4711', role: 'master' },
        },
      ],
      [
        '2026-11-20T10:00:00.123+0000 I NETWORK  [conn7] end connection 192.0.2.7:4711',
        {
          time: '2026-11-20T10:00:00.123+0000',
          level: 'info',
          message: 'end connection 192.0.2.7:4711',
          metadata: { logger: 'NETWORK', thread: 'conn7' },
        },
      ],
      [
        '2026.11.20 10:00:00.123456 [ 4711 ] {} <Error> Application: Cannot listen',
        {
          time: '2026-11-20T10:00:00.123456Z',
          level: 'error',
          message: 'Cannot listen',
          metadata: { tid: '4711', logger: 'Application' },
        },
      ],
    ],
  ],
  [
    'web servers',
    [
      [
        '192.0.2.7 - frank [20/Nov/2026:10:00:00 -0700] "GET /apache_pb.gif?a=1 HTTP/1.0" 200 2326',
        {
          time: '2026-11-20T10:00:00-0700',
          level: 'info',
          pathname: '/apache_pb.gif',
          message: '"GET /apache_pb.gif?a=1 HTTP/1.0" 200 2326',
          metadata: {
            client: '192.0.2.7',
            user: 'frank',
            method: 'GET',
            query: 'a=1',
            protocol: 'HTTP/1.0',
            status: 200,
            bytes: 2326,
          },
        },
      ],
      [
        '2001:db8::7 - - [20/Nov/2026:10:00:00 +0000] "POST /login HTTP/2.0" 503 0 "https://a.example/" "curl/8 \\"x\\"" "-"',
        {
          time: '2026-11-20T10:00:00+0000',
          level: 'error',
          pathname: '/login',
          message: '"POST /login HTTP/2.0" 503 0 "https://a.example/" "curl/8 \\"x\\"" "-"',
          metadata: {
            client: '2001:db8::7',
            method: 'POST',
            protocol: 'HTTP/2.0',
            status: 503,
            bytes: 0,
            referrer: 'https://a.example/',
            userAgent: 'curl/8 \\"x\\"',
          },
        },
      ],
      [
        'a.example:443 192.0.2.7 - - [20/Nov/2026:10:00:00 +0000] "\\x16\\x03" 400 150 "-" "-"',
        {
          time: '2026-11-20T10:00:00+0000',
          level: 'warn',
          message: '"\\x16\\x03" 400 150 "-" "-"',
          metadata: { server: 'a.example:443', client: '192.0.2.7', status: 400, bytes: 150 },
        },
      ],
      [
        '2026/11/20 10:00:00 [error] 31#32: *7 open() "/x" failed (2: No such file or directory), client: 192.0.2.7, server: a.example, request: "GET /x HTTP/1.1", host: "a.example"',
        {
          time: '2026-11-20T10:00:00Z',
          level: 'error',
          message:
            'open() "/x" failed (2: No such file or directory), client: 192.0.2.7, server: a.example, request: "GET /x HTTP/1.1", host: "a.example"',
          metadata: {
            pid: '31',
            tid: '32',
            connection: '7',
            client: '192.0.2.7',
            server: 'a.example',
            request: 'GET /x HTTP/1.1',
            host: 'a.example',
          },
        },
      ],
      [
        '[Fri Nov 20 10:00:00.123456 2026] [proxy:error] [pid 31:tid 140] [client 192.0.2.7:4711] AH00898: Error reading from remote server',
        {
          time: '2026-11-20T10:00:00.123456Z',
          level: 'error',
          message: 'AH00898: Error reading from remote server',
          metadata: { module: 'proxy', pid: '31', tid: '140', client: '192.0.2.7:4711' },
        },
      ],
      [
        '1795168800.123    456 192.0.2.7 TCP_MISS/200 1234 GET http://a.example/ - HIER_DIRECT/192.0.2.9 text/html',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'info',
          message: '456 192.0.2.7 TCP_MISS/200 1234 GET http://a.example/ - HIER_DIRECT/192.0.2.9 text/html',
          metadata: { status: 200 },
        },
      ],
      [
        'E [20/Nov/2026:10:00:00 +0000] Unable to open device',
        { time: '2026-11-20T10:00:00+0000', level: 'error', message: 'Unable to open device' },
      ],
    ],
  ],
  [
    'syslog and systems',
    [
      [
        'Nov 20 10:00:00 web1 sshd[4711]: error: maximum authentication attempts exceeded',
        {
          time: '2026-11-20T10:00:00Z',
          level: 'error',
          service: 'sshd',
          message: 'error: maximum authentication attempts exceeded',
          metadata: { host: 'web1', pid: '4711' },
        },
      ],
      [
        'Dec  1 10:00:00 web1 kernel: [12345.678901] usb 1-1: new device',
        {
          time: '2025-12-01T10:00:00Z',
          service: 'kernel',
          message: '[12345.678901] usb 1-1: new device',
          metadata: { host: 'web1' },
        },
      ],
      [
        "<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8",
        {
          time: '2026-10-11T22:14:15Z',
          level: 'error',
          service: 'su',
          message: "'su root' failed for lonvick on /dev/pts/8",
          metadata: { originalLevel: 'critical', facility: 'auth', host: 'mymachine' },
        },
      ],
      [
        '<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 iut="3" eventSource="App\\"x"][b@1 c="d"] \uFEFFAn application event',
        {
          time: '2003-10-11T22:14:15.003Z',
          level: 'info',
          service: 'evntslog',
          message: 'An application event',
          metadata: {
            originalLevel: 'notice',
            host: 'mymachine.example.com',
            messageId: 'ID47',
            structuredData: {
              'exampleSDID@32473': { iut: '3', eventSource: 'App"x' },
              'b@1': { c: 'd' },
            },
            facility: 'local4',
          },
        },
      ],
      [
        '2026-11-20T10:00:00.123456+01:00 web1 systemd[1]: Started shop.service.',
        {
          time: '2026-11-20T10:00:00.123456+01:00',
          service: 'systemd',
          message: 'Started shop.service.',
          metadata: { host: 'web1', pid: '1' },
        },
      ],
      [
        'Nov 20 10:00:00 ap1 daemon.warn dnsmasq[7]: no servers found',
        {
          time: '2026-11-20T10:00:00Z',
          level: 'warn',
          service: 'dnsmasq',
          message: 'no servers found',
          metadata: { host: 'ap1', facility: 'daemon', pid: '7' },
        },
      ],
      [
        'Nov 20 10:00:00 sw1 %LINK-3-UPDOWN: Interface Gi0/1, changed state to down',
        {
          time: '2026-11-20T10:00:00Z',
          level: 'error',
          message: '%LINK-3-UPDOWN: Interface Gi0/1, changed state to down',
          metadata: { host: 'sw1' },
        },
      ],
      [
        'Nov 20 10:00:00 mac com.apple.xpc.launchd[1] (com.example.agent[42]) <Warning>: Service exited',
        {
          time: '2026-11-20T10:00:00Z',
          level: 'warn',
          service: 'com.apple.xpc.launchd',
          message: 'Service exited',
          metadata: { host: 'mac', pid: '1', thread: 'com.example.agent[42]' },
        },
      ],
      [
        '11-20 10:00:00.123  1702  2395 E ActivityManager: ANR in org.example',
        {
          time: '2026-11-20T10:00:00.123Z',
          level: 'error',
          message: 'ANR in org.example',
          metadata: { pid: '1702', tid: '2395', logger: 'ActivityManager' },
        },
      ],
      [
        'W/ActivityManager( 1702): slow',
        { level: 'warn', message: 'slow', metadata: { pid: '1702', logger: 'ActivityManager' } },
      ],
      [
        '2016-09-28 04:30:30, Error                 CBS    Failed to load',
        {
          time: '2016-09-28T04:30:30Z',
          level: 'error',
          message: 'Failed to load',
          metadata: { logger: 'CBS' },
        },
      ],
      [
        '2026-06-02T11:58:12.193Z info vpxd[45715] [Originator@6876 sub=vpxLro] BEGIN',
        {
          time: '2026-06-02T11:58:12.193Z',
          level: 'info',
          service: 'vpxd',
          message: '[Originator@6876 sub=vpxLro] BEGIN',
          metadata: { pid: '45715' },
        },
      ],
      [
        '@4000000037c219bf2ef02e94 tcpserver: ok',
        { time: '1999-08-24T04:04:05.787492500Z', message: 'tcpserver: ok' },
      ],
      [
        'Fri, 20 Nov 2026 10:00:00 +0000 delivered',
        { time: '2026-11-20T10:00:00+0000', message: 'delivered' },
      ],
      [
        'Fri Nov 20 10:00:00 2026 us=123 TLS Error: handshake failed',
        { time: '2026-11-20T10:00:00Z', message: 'us=123 TLS Error: handshake failed' },
      ],
      [
        '[1795168800] SERVICE ALERT: web1;HTTP;CRITICAL;SOFT;1;timeout',
        { time: '2026-11-20T10:00:00Z', message: 'SERVICE ALERT: web1;HTTP;CRITICAL;SOFT;1;timeout' },
      ],
    ],
  ],
  [
    'texts without a level, or without a prefix',
    [
      [
        '2026-11-20 10:00:00 Got ERROR from the server',
        { time: '2026-11-20T10:00:00Z', message: 'Got ERROR from the server' },
      ],
      [
        '2026-11-20 10:00:00 Error while reading',
        { time: '2026-11-20T10:00:00Z', message: 'Error while reading' },
      ],
      ['2026-11-20 10:00:00 alert the team', { time: '2026-11-20T10:00:00Z', message: 'alert the team' }],
      [
        '2026-11-20 10:00:00 [worker] info about it',
        { time: '2026-11-20T10:00:00Z', message: '[worker] info about it' },
      ],
      ['Error: connect ECONNREFUSED', { message: 'Error: connect ECONNREFUSED' }],
      ['ERROR in the middle', { message: 'ERROR in the middle' }],
      ['2026-11-20 10:00:00abc', { message: '2026-11-20 10:00:00abc' }],
      ['2026-02-30 10:00:00 x', { message: '2026-02-30 10:00:00 x' }],
      ['2026-11-20 25:00:00 x', { message: '2026-11-20 25:00:00 x' }],
      ['10.0.0.1 is down', { message: '10.0.0.1 is down' }],
      ['1234567890 items', { message: '1234567890 items' }],
      ['May the force be with you', { message: 'May the force be with you' }],
      ['a=1 b=2', { message: 'a=1 b=2' }],
      ['web-1  | id | name', { message: 'web-1  | id | name' }],
    ],
  ],
])('%s', (_group, lines) => {
  test.each(lines)('%s', (text, expected) => {
    expect(readLine(text)).toEqual(expected)
    expect(lostWordsOf(text)).toEqual([])
  })
})

test('a very long value is only in the message', () => {
  const query = 'a=1&'.repeat(5_000)
  const request = `"GET /a?${query} HTTP/1.1" 200 7`
  expect(readLine(`192.0.2.7 - - [20/Nov/2026:10:00:00 +0000] ${request}`)).toMatchObject({
    pathname: '/a',
    message: request,
    metadata: { client: '192.0.2.7', method: 'GET', protocol: 'HTTP/1.1', status: 200, bytes: 7 },
  })
  expect(readLine(`192.0.2.7 - - [20/Nov/2026:10:00:00 +0000] ${request}`).metadata).not.toHaveProperty(
    'query',
  )
})
