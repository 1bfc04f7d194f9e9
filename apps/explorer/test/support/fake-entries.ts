/** An entry as the query API answers it. `metadata` is JSON, as it was sent: integers of any size included. */
export interface FakeEntry {
  readonly id: string
  readonly timestamp: string
  readonly received_at: string
  readonly level: string
  readonly message: string
  readonly service?: string
  readonly environment?: string
  readonly pathname?: string
  readonly stack?: string
  readonly metadata: string
}

/** A generator of numbers below 1 that begins anew for each server. */
export function randomFrom(seed: number): () => number {
  let state = seed
  return () => (state = (state * 16807) % 2147483647) / 2147483647
}

/** A UUIDv7 of a time. */
export function idAt(ms: number, number: number): string {
  const time = Math.round(ms).toString(16).padStart(12, '0')
  const rest = number.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${rest}`
}

const stack = `Error: connect ECONNREFUSED 10.0.3.7:5432
    at TCPConnectWrap.afterConnect (node:net:1637:16)
    at Socket.emit (node:events:518:28)
    at Pool.acquire (/app/node_modules/pg-pool/index.js:88:13)
    at createOrder (/app/src/orders/create.ts:41:22)
    at handle (/app/src/http/router.ts:19:5)`

/** One entry of a shop of three services, at a time. Every 40th minute something is wrong with its database. */
export function fakeEntry(ms: number, number: number, random: () => number): FakeEntry {
  const pick = <Item>(...items: readonly [Item, ...Item[]]): Item =>
    items[Math.floor(random() * items.length)] ?? items[0]
  const service = pick('checkout', 'checkout', 'payments', 'web')
  const isBurst = ms % 2_400_000 < 180_000 && service !== 'web' && random() < 0.7
  const level = isBurst
    ? 'error'
    : random() < 0.03
      ? 'warn'
      : random() < 0.04
        ? 'success'
        : random() < 0.18
          ? 'debug'
          : random() < 0.1
            ? 'log'
            : 'info'
  const path = pick('/api/v1/orders', '/api/v1/orders', '/api/v1/pay', '/cart', '/health')
  const status = isBurst ? pick(503, 503, 500, 504) : level === 'warn' ? 429 : 200
  const took = isBurst ? 2000 + Math.floor(random() * 900) : Math.floor(random() * 180)
  const request = `req-${Math.floor(number / 4).toString(36)}`
  const messages: Record<string, readonly [string, ...string[]]> = {
    error: [
      'connection refused by payments:5432',
      `order ${55_000 + number} not created: upstream connection refused`,
      'pool exhausted, last error: connection refused',
    ],
    warn: [`rate limit reached for client ${number % 97}`, `slow query: ${took * 9} ms in orders_by_user`],
    success: [`payment ${88_000 + number} settled`],
    debug: [`cache ${pick('hit', 'miss')} for cart:${number % 311}`, 'pool: 7 of 20 connections in use'],
    log: ['worker heartbeat'],
    info: [
      `${pick('GET', 'POST')} ${path} ${status} in ${took} ms`,
      `session renewed for user ${number % 1187}`,
    ],
  }
  return {
    id: idAt(ms + 30, number),
    timestamp: `${new Date(ms).toISOString().slice(0, 23)}${String(number % 1000).padStart(3, '0')}Z`,
    received_at: new Date(ms + 30).toISOString(),
    level,
    message: pick(...(messages[level] ?? ['?'])),
    service,
    environment: random() < 0.9 ? 'production' : 'staging',
    ...(service === 'web' ? { pathname: path } : {}),
    ...(level === 'error' ? { stack } : {}),
    metadata: `{"request_id":"${request}","http":{"status":${status},"method":"POST","duration_ms":${took}},"user":{"id":${number % 1187},"plan":"${pick('free', 'team')}"},"order":{"id":1234567890123456${String(number).padStart(4, '0')}},"host":"${pick('web-1', 'web-2', 'web-3')}","retries":null,"tags":["a","b"]}`,
  }
}

/** Entries that want to be something else than text, newest first in a test. */
export function hostileEntries(ms: number): FakeEntry[] {
  const paths = Array.from({ length: 10_000 }, (_, index) => `"path${index}":${index}`).join(',')
  const texts: readonly (readonly [message: string, metadata: string])[] = [
    [
      '<img src=x onerror="document.title=1"><script>document.title=1</script>',
      '{"<b>name</b>":"<svg onload=alert(1)>","__proto__":{"polluted":true},"constructor":"c"}',
    ],
    ['admin\u202e\u2066gnp.exe\u2069 \u0000\u0007\u001b[31mred\u200b zero', '{"left\\u202eright":"\\u0000"}'],
    ['שלום עולם مرحبا 12345', '{"rtl":"مرحبا"}'],
    [`long ${'x'.repeat(65_530)}`, `{"line":"${'y'.repeat(60_000)}"}`],
    ['ten thousand paths', `{${paths}}`],
    [
      'first line\nsecond line\twith a tab',
      '{"big":123456789012345678901234567890,"negative":-9007199254740993}',
    ],
  ]
  return texts.map(([message, metadata], index) => ({
    id: idAt(ms, 900_000 + index),
    timestamp: new Date(ms + index).toISOString(),
    received_at: new Date(ms + index).toISOString(),
    level: 'info',
    message,
    service: 'hostile',
    metadata,
  }))
}
