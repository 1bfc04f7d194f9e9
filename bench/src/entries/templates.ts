import { integer, pick, pickWeighted, type Random } from '@sluice/harness/random'
import type { Entry } from '@sluice/schema'
import { exponential, hex, longTailed } from './distributions.ts'

/** The part of an entry that depends on its template or log file. */
type EntryContent = Pick<Entry, 'level' | 'message' | 'service'> &
  Partial<Pick<Entry, 'url' | 'pathname' | 'stack' | 'source'>>

const words: Readonly<Record<string, readonly string[]>> = {
  path: ['/api/orders', '/api/cart/items', '/api/users/me', '/search', '/checkout', '/login'],
  table: ['orders', 'customers', 'payments', 'inventory', 'sessions'],
  queue: ['emails', 'invoices', 'thumbnails', 'webhooks'],
  error: ['ECONNRESET', 'ETIMEDOUT', 'ECONNREFUSED', 'EPIPE'],
  product: ['lamp', 'oak table', 'running shoes', 'usb-c cable', 'raincoat', 'espresso', 'tent'],
}
const ADDRESS = '10.{0-3}.{0-255}.{1-254}'

/** Lines that have only a level, a service and a message. `draw` says what the braces mean. */
const lines = [
  'debug orders select * from {table} where id = {1-9000000} returned {0-40} rows in {~3.0} ms',
  'debug cart cache {hit|hit|hit|miss} for session:{#12}, ttl {1-3600} s',
  'success payments captured {~39.00} EUR for order {100000-999999} with card ending {1000-9999}',
  `info auth user {1-400000} logged in from ${ADDRESS} with {password|passkey|google}`,
  'info jobs processed job {#8} of {queue} in {~180.0} ms, {0-900} waiting',
  'info search query "{product}" found {0-2000} products, took {~12.0} ms on {1-8} shards',
  'warn jobs retrying {queue} after {error}, attempt {2-6}, next in {1-64} s',
  `warn gateway slow upstream ${ADDRESS}:8080 answered {path} after {~2400.0} ms`,
] as const

/** One of some words, a number of a range, hexadecimal digits, or a value with a long tail, whose median has as many decimals. */
function draw(part: string, random: Random): string {
  const [, min, max] = /^(\d+)-(\d+)$/.exec(part) ?? []
  if (max !== undefined) return String(integer(random, Number(min), Number(max)))
  if (part.startsWith('#')) return hex(random, Number(part.slice(1)))
  const [, median, decimals = ''] = /^~(\d+)\.(0+)$/.exec(part) ?? []
  if (median !== undefined) return longTailed(random, Number(median)).toFixed(decimals.length)
  return pick(random, words[part] ?? part.split('|'))
}

const fill = (text: string, random: Random): string =>
  text.replaceAll(/\{([^}]+)\}/g, (_braces, part: string) => draw(part, random))

function request(random: Random): EntryContent {
  const pathname = fill('{path}/{1-90000}', random)
  const status = fill('{200|200|200|200|201|204|304|404}', random)
  const message = fill(`{GET|GET|GET|POST|PUT} ${pathname} ${status} in {~24.0} ms`, random)
  return { level: 'info', service: 'gateway', message, url: `https://shop.example.com${pathname}`, pathname }
}

function pageView(random: Random): EntryContent {
  const pathname = fill('{path}', random)
  const message = fill('page shown after {~640.0} ms, {4-60} requests, {60-4000} KB', random)
  const url = `https://shop.example.com${pathname}?ref=${hex(random, 6)}`
  return { level: 'log', service: 'web', source: 'client', message, url, pathname }
}

function failure(random: Random): EntryContent {
  const [code, port] = fill('{error} {5432|6379|9200}', random).split(' ')
  const message = `connect ${code} ${fill(ADDRESS, random)}:${port}`
  const frame = '    at {query|connect|retry|handle} (/app/src/{table}.js:{1-400}:{3-40})'
  const frames = Array.from({ length: integer(random, 3, 7) }, () => fill(frame, random))
  return { level: 'error', service: 'orders', message, stack: [`Error: ${message}`, ...frames].join('\n') }
}

/** In real logs a few kinds of lines dominate, and errors are rare. */
const templates: readonly (readonly [weight: number, template: (random: Random) => EntryContent])[] = [
  [6, request],
  [2, pageView],
  ...lines.map((line) => {
    const [, level, service = '', text = ''] = /^(\w+) (\w+) (.*)$/.exec(line) ?? []
    const template = (random: Random): EntryContent => ({
      level: level as EntryContent['level'],
      service,
      message: fill(text, random),
    })
    return [1, template] as const
  }),
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
