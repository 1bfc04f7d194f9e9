import { describe, expect, test } from 'vitest'
import { lostWordsOf, readLine } from '../support.ts'

const time = '2026-11-20T10:00:00Z'
const exact = '2026-11-20T10:00:00.123Z'

describe('access logs', () => {
  test.each([
    ['192.0.2.7 - - [20/Nov/2026 10:00:00] "GET /a HTTP/1.1" 500 -', time, 500, '192.0.2.7'],
    ['192.0.2.7 - - [20/Nov/2026 10:00:00] "GET /a HTTP/1.1" 500', time, 500, '192.0.2.7'],
    [
      '192.0.2.7, 192.0.2.8 - - [20/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 500 12',
      '2026-11-20T10:00:00+0000',
      500,
      '192.0.2.7, 192.0.2.8',
    ],
    [
      '- - - [20/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 500 12',
      '2026-11-20T10:00:00+0000',
      500,
      undefined,
    ],
    ['192.0.2.7 - - [2026-11-20T10:00:00Z] "GET /a HTTP/1.1" 500 12', time, 500, '192.0.2.7'],
    ['[20/Nov/2026 10:00:00] "GET /a HTTP/1.1" 500 12', time, 500, undefined],
    ['[2026-11-20T10:00:00.123Z] "GET /a HTTP/1.1" 503 UF 0 12 3 - "-" "curl" "x"', exact, 503, undefined],
    ['[20/Nov/2026:10:00:00 Z] 192.0.2.7 "GET /a HTTP/1.1" 502 12', time, 502, '192.0.2.7'],
    [
      '[pid: 12|app: 0|req: 1/1] 192.0.2.7 () {28 vars in 300 bytes} [Fri Nov 20 10:00:00 2026] GET /a => generated 12 bytes in 3 msecs (HTTP/1.1 500) 2 headers in 80 bytes (1 switches on core 0)',
      time,
      500,
      '192.0.2.7',
    ],
    [
      'https 2026-11-20T10:00:00.123Z app/shop/5f3 192.0.2.7:5000 192.0.2.8:80 0.0 0.1 0.0 502 502 34 366 "GET https://a.example:443/a HTTP/1.1" "curl/8" - -',
      exact,
      502,
      '192.0.2.7',
    ],
  ])('have time, status and client: %s', (text, timestamp, status, client) => {
    const line = readLine(text)
    expect(line).toMatchObject({ time: timestamp, level: 'error', metadata: { status, method: 'GET' } })
    expect(line.metadata?.['client']).toBe(client)
    expect(lostWordsOf(text)).toEqual([])
  })

  test.each([
    [
      'Nov 20 10:00:00 lb haproxy[12]: 192.0.2.7:5000 [20/Nov/2026:10:00:00.123] web shop/s1 0/0/1/2/3 503 512 - - ---- 1/1',
      'error',
    ],
    ['1795168800.123    456 192.0.2.7 TCP_MISS/404 1234 GET http://a.example/ - NONE/- text/html', 'warn'],
    [
      `${'7'.repeat(64)} files [20/Nov/2026:10:00:00 +0000] 192.0.2.7 - 3E5 REST.GET.OBJECT a "GET /a HTTP/1.1" 404 NoSuchKey 2`,
      'warn',
    ],
  ])('have the level of the status: %s', (text, level) => {
    expect(readLine(text)).toMatchObject({ level, metadata: { status: level === 'warn' ? 404 : 503 } })
    expect(lostWordsOf(text)).toEqual([])
  })
})
