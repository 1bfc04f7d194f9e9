import { integer, pick, pickWeighted, type Random } from '@sluice/harness/random'
import type { Entry } from '@sluice/schema'
import { exponential, hex, longTailed } from './distributions.ts'

/** The part of an entry that depends on its template or log file. */
type EntryContent = Pick<Entry, 'level' | 'message' | 'service'> &
  Partial<Pick<Entry, 'url' | 'pathname' | 'stack' | 'source'>>

type ContentSource = (random: Random) => EntryContent

const paths = ['/api/orders', '/api/cart/items', '/api/users/me', '/search', '/checkout', '/login']
const tables = ['orders', 'customers', 'payments', 'inventory', 'sessions']
const queues = ['emails', 'invoices', 'thumbnails', 'webhooks']
const errors = ['ECONNRESET', 'ETIMEDOUT', 'ECONNREFUSED', 'EPIPE']
const words = ['lamp', 'oak table', 'running shoes', 'usb-c cable', 'raincoat', 'espresso', 'tent']

const address = (random: Random): string =>
  `10.${integer(random, 0, 3)}.${integer(random, 0, 255)}.${integer(random, 1, 254)}`
const ms = (random: Random, median: number): string => longTailed(random, median).toFixed(1)

const request: ContentSource = (random) => {
  const pathname = `${pick(random, paths)}/${integer(random, 1, 90_000)}`
  const status = pick(random, [200, 200, 200, 200, 201, 204, 304, 404])
  return {
    level: 'info',
    service: 'gateway',
    message: `${pick(random, ['GET', 'GET', 'GET', 'POST', 'PUT'])} ${pathname} ${status} in ${ms(random, 24)} ms`,
    url: `https://shop.example.com${pathname}`,
    pathname,
  }
}

const pageView: ContentSource = (random) => {
  const pathname = pick(random, paths)
  return {
    level: 'log',
    service: 'web',
    source: 'client',
    message: `page shown after ${ms(random, 640)} ms, ${integer(random, 4, 60)} requests, ${integer(random, 60, 4_000)} KB`,
    url: `https://shop.example.com${pathname}?ref=${hex(random, 6)}`,
    pathname,
  }
}

const query: ContentSource = (random) => ({
  level: 'debug',
  service: 'orders',
  message: `select * from ${pick(random, tables)} where id = ${integer(random, 1, 9_000_000)} returned ${integer(random, 0, 40)} rows in ${ms(random, 3)} ms`,
})

const cacheLookup: ContentSource = (random) => ({
  level: 'debug',
  service: 'cart',
  message: `cache ${pick(random, ['hit', 'hit', 'hit', 'miss'])} for session:${hex(random, 12)}, ttl ${integer(random, 1, 3_600)} s`,
})

const payment: ContentSource = (random) => ({
  level: 'success',
  service: 'payments',
  message: `captured ${longTailed(random, 39).toFixed(2)} EUR for order ${integer(random, 100_000, 999_999)} with card ending ${integer(random, 1_000, 9_999)}`,
})

const login: ContentSource = (random) => ({
  level: 'info',
  service: 'auth',
  message: `user ${integer(random, 1, 400_000)} logged in from ${address(random)} with ${pick(random, ['password', 'passkey', 'google'])}`,
})

const job: ContentSource = (random) => ({
  level: 'info',
  service: 'jobs',
  message: `processed job ${hex(random, 8)} of ${pick(random, queues)} in ${ms(random, 180)} ms, ${integer(random, 0, 900)} waiting`,
})

const search: ContentSource = (random) => ({
  level: 'info',
  service: 'search',
  message: `query "${pick(random, words)}" found ${integer(random, 0, 2_000)} products, took ${ms(random, 12)} ms on ${integer(random, 1, 8)} shards`,
})

const retry: ContentSource = (random) => ({
  level: 'warn',
  service: 'jobs',
  message: `retrying ${pick(random, queues)} after ${pick(random, errors)}, attempt ${integer(random, 2, 6)}, next in ${integer(random, 1, 64)} s`,
})

const slowUpstream: ContentSource = (random) => ({
  level: 'warn',
  service: 'gateway',
  message: `slow upstream ${address(random)}:8080 answered ${pick(random, paths)} after ${ms(random, 2_400)} ms`,
})

const failure: ContentSource = (random) => {
  const code = pick(random, errors)
  const port = pick(random, [5432, 6379, 9200])
  const message = `connect ${code} ${address(random)}:${port}`
  const lines = Array.from(
    { length: integer(random, 3, 7) },
    () =>
      `    at ${pick(random, ['query', 'connect', 'retry', 'handle'])} (/app/src/${pick(random, tables)}.js:${integer(random, 1, 400)}:${integer(random, 3, 40)})`,
  )
  return { level: 'error', service: 'orders', message, stack: [`Error: ${message}`, ...lines].join('\n') }
}

/** In real logs a few kinds of lines dominate, and errors are rare. */
const templates: readonly (readonly [weight: number, template: ContentSource])[] = [
  [6, request],
  [2, pageView],
  [1, query],
  [1, cacheLookup],
  [1, payment],
  [1, login],
  [1, job],
  [1, search],
  [1, retry],
  [1, slowUpstream],
  [1, failure],
]

/** Mean difference between the timestamps of consecutive entries. */
const GAP_MS = 3

/** Generates realistic entries. */
export function entrySource(random: Random, startMs: number): () => Entry {
  let timeMs = startMs
  return () => {
    timeMs += exponential(random, GAP_MS)
    const content = pickWeighted(random, templates)(random)
    const timestamp = new Date(timeMs).toISOString()
    return { ...content, timestamp, environment: 'production', metadata: makeMetadata(random) }
  }
}

/** Typical metadata of an application: ids, durations, a nested object, a list of tags. */
function makeMetadata(random: Random): Record<string, unknown> {
  return {
    requestId: hex(random, 16),
    durationMs: Number(longTailed(random, 24).toFixed(2)),
    user: { id: integer(random, 1, 400_000), plan: pick(random, ['free', 'free', 'pro', 'team']) },
    host: `app-${integer(random, 1, 40)}`,
    tags: [pick(random, ['web', 'mobile', 'batch']), `v${integer(random, 40, 47)}`],
  }
}
