import type { Entry } from '@sluice/schema'
import type { Random } from './random.ts'

/** What a template says of an entry; the rest is the same for all entries. */
export type Told = Pick<Entry, 'level' | 'message' | 'service'> &
  Partial<Pick<Entry, 'url' | 'pathname' | 'stack' | 'source'>>

type Template = (random: Random) => Told

const paths = ['/api/orders', '/api/cart/items', '/api/users/me', '/search', '/checkout', '/login'] as const
const tables = ['orders', 'customers', 'payments', 'inventory', 'sessions'] as const
const queues = ['emails', 'invoices', 'thumbnails', 'webhooks'] as const
const errors = ['ECONNRESET', 'ETIMEDOUT', 'ECONNREFUSED', 'EPIPE'] as const
const words = ['lamp', 'oak table', 'running shoes', 'usb-c cable', 'raincoat', 'espresso', 'tent'] as const

const address = (random: Random): string =>
  `10.${random.integer(0, 4)}.${random.integer(0, 256)}.${random.integer(1, 255)}`
const ms = (random: Random, median: number): string => random.longTailed(median).toFixed(1)

const request: Template = (random) => {
  const pathname = `${random.pick(paths)}/${random.integer(1, 90_000)}`
  const status = random.pick([200, 200, 200, 200, 201, 204, 304, 404])
  return {
    level: 'info',
    service: 'gateway',
    message: `${random.pick(['GET', 'GET', 'GET', 'POST', 'PUT'])} ${pathname} ${status} in ${ms(random, 24)} ms`,
    url: `https://shop.example.com${pathname}`,
    pathname,
  }
}

const pageView: Template = (random) => {
  const pathname = random.pick(paths)
  return {
    level: 'log',
    service: 'web',
    source: 'client',
    message: `page shown after ${ms(random, 640)} ms, ${random.integer(4, 60)} requests, ${random.integer(60, 4_000)} KB`,
    url: `https://shop.example.com${pathname}?ref=${random.hex(6)}`,
    pathname,
  }
}

const failure: Template = (random) => {
  const code = random.pick(errors)
  const port = random.pick([5432, 6379, 9200])
  const message = `connect ${code} ${address(random)}:${port}`
  const lines = Array.from(
    { length: random.integer(3, 8) },
    () =>
      `    at ${random.pick(['query', 'connect', 'retry', 'handle'])} (/app/src/${random.pick(tables)}.js:${random.integer(1, 400)}:${random.integer(3, 40)})`,
  )
  return { level: 'error', service: 'orders', message, stack: [`Error: ${message}`, ...lines].join('\n') }
}

/** Each template as often as it stands here: most lines of a real log are of a few kinds, and errors are rare. */
const templates: readonly [Template, ...Template[]] = [
  request,
  request,
  request,
  request,
  request,
  request,
  pageView,
  pageView,
  (random) => ({
    level: 'debug',
    service: 'orders',
    message: `select * from ${random.pick(tables)} where id = ${random.integer(1, 9_000_000)} returned ${random.integer(0, 40)} rows in ${ms(random, 3)} ms`,
  }),
  (random) => ({
    level: 'debug',
    service: 'cart',
    message: `cache ${random.pick(['hit', 'hit', 'hit', 'miss'])} for session:${random.hex(12)}, ttl ${random.integer(1, 3_600)} s`,
  }),
  (random) => ({
    level: 'success',
    service: 'payments',
    message: `captured ${random.longTailed(39).toFixed(2)} EUR for order ${random.integer(100_000, 999_999)} with card ending ${random.integer(1_000, 9_999)}`,
  }),
  (random) => ({
    level: 'info',
    service: 'auth',
    message: `user ${random.integer(1, 400_000)} logged in from ${address(random)} with ${random.pick(['password', 'passkey', 'google'])}`,
  }),
  (random) => ({
    level: 'info',
    service: 'jobs',
    message: `processed job ${random.hex(8)} of ${random.pick(queues)} in ${ms(random, 180)} ms, ${random.integer(0, 900)} waiting`,
  }),
  (random) => ({
    level: 'info',
    service: 'search',
    message: `query "${random.pick(words)}" found ${random.integer(0, 2_000)} products, took ${ms(random, 12)} ms on ${random.integer(1, 8)} shards`,
  }),
  (random) => ({
    level: 'warn',
    service: 'jobs',
    message: `retrying ${random.pick(queues)} after ${random.pick(errors)}, attempt ${random.integer(2, 6)}, next in ${random.integer(1, 64)} s`,
  }),
  (random) => ({
    level: 'warn',
    service: 'gateway',
    message: `slow upstream ${address(random)}:8080 answered ${random.pick(paths)} after ${ms(random, 2_400)} ms`,
  }),
  failure,
]

export function tellFromTemplates(random: Random): Told {
  return random.pick(templates)(random)
}

/** What an application adds to its lines: ids, durations, a nested object, a list of tags. */
export function makeMetadata(random: Random): Record<string, unknown> {
  return {
    requestId: random.hex(16),
    durationMs: Number(random.longTailed(24).toFixed(2)),
    user: { id: random.integer(1, 400_000), plan: random.pick(['free', 'free', 'pro', 'team']) },
    host: `app-${random.integer(1, 40)}`,
    tags: [random.pick(['web', 'mobile', 'batch']), `v${random.integer(40, 48)}`],
  }
}
