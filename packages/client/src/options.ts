import { logsAddress } from './address.ts'
import { isBrowser } from './browser.ts'
import type { Environment, Source } from './entry.ts'
import type { Fetch } from './fetch.ts'
import type { Hooks } from './hooks.ts'
import { contractLimits } from './limits.ts'
import type { Platform } from './platform.ts'
import type { Spool } from './spool.ts'
import { HOUR_MS } from './timers.ts'

/** Fields that all entries of a logger have, unless the entry has its own value. */
export interface EntryDefaults {
  /** The name of the application. */
  readonly service?: string | undefined
  readonly environment?: Environment | undefined
  /** Default: `client` in browsers, otherwise absent. */
  readonly source?: Source | undefined
}

/** `auto` is zstd where the runtime has it, otherwise gzip. */
export type Compression = 'auto' | 'gzip' | 'none'
export type OverflowPolicy = 'drop-oldest' | 'drop-newest'

/** The defaults are in `defaults`, with their reasons. */
export interface ClientOptions extends EntryDefaults, Hooks {
  /** The address of the API, such as `https://logs.example.com`. May end with `/v1` or `/v1/logs`. */
  readonly url: string
  /** Not in browsers: there, `url` is a backend that adds the key. */
  readonly apiKey?: string | undefined
  /** Metadata of all entries. */
  readonly metadata?: object | undefined

  /** The most entries of a request. */
  readonly batchEntriesMax?: number | undefined
  /** The most bytes of a request before compression. A larger entry is sent alone. */
  readonly batchBytesMax?: number | undefined
  /** How long an entry waits for others before it is sent. */
  readonly flushIntervalMs?: number | undefined
  readonly compression?: Compression | undefined

  /** The most entries in memory, those in flight included. */
  readonly queueEntriesMax?: number | undefined
  /** The most bytes of entries in memory, as JSON. */
  readonly queueBytesMax?: number | undefined
  /** What is dropped when the queue is full: the oldest request that is not in flight, or the new entry. */
  readonly overflow?: OverflowPolicy | undefined

  readonly requestsInFlightMax?: number | undefined
  /** How long one attempt may take. */
  readonly requestTimeoutMs?: number | undefined
  /** How long a request is retried, from its first attempt. */
  readonly retryForMs?: number | undefined
  /** How long the API remembers an idempotency key: its setting IDEMPOTENCY_WINDOW_SECONDS. */
  readonly idempotencyWindowMs?: number | undefined

  /** Keeps entries on disk until they are acknowledged: `DiskSpool` of `@sluice/client/spool`. */
  readonly spool?: Spool | undefined
  /** Whether to send what is left when Node, Deno or Bun has nothing else to do. */
  readonly flushOnExit?: boolean | undefined
  /** Default: the global `fetch`. */
  readonly fetch?: Fetch | undefined
}

const MIB = 1024 * 1024

export const defaults = {
  /** The most that the API accepts. */
  batchEntriesMax: contractLimits.entriesPerRequestMax,
  /** The API decodes bodies up to this size at once, and larger ones in a thread. 100 usual entries have 50 KB. */
  batchBytesMax: 256 * 1024,
  /** Each request has an idempotency key, and a project has a million per hour: enough for 277 processes that log all the time. */
  flushIntervalMs: 1_000,
  compression: 'auto',
  /** Some seconds of a busy application, or hours of a quiet one. */
  queueEntriesMax: 10_000,
  queueBytesMax: 16 * MIB,
  /** The newest entries show what the application does now. */
  overflow: 'drop-oldest',
  /** Enough to keep the API busy over a slow connection. */
  requestsInFlightMax: 4,
  /** The API answers within 2 s. A slow connection may need longer for a large request. */
  requestTimeoutMs: 30_000,
  /** Without an end: the size of the queue limits what is retried. */
  retryForMs: Infinity,
  /** The default of the API. */
  idempotencyWindowMs: HOUR_MS,
  flushOnExit: true,
} as const

/** Options with all defaults. */
export interface Settings {
  /** The address of the logs resource. */
  readonly url: string
  readonly apiKey: string | undefined
  readonly batchEntriesMax: number
  readonly batchBytesMax: number
  readonly flushIntervalMs: number
  readonly compression: Compression
  readonly queueEntriesMax: number
  readonly queueBytesMax: number
  readonly overflow: OverflowPolicy
  readonly requestsInFlightMax: number
  readonly requestTimeoutMs: number
  readonly retryForMs: number
  readonly idempotencyWindowMs: number
  readonly spool: Spool | undefined
  readonly flushOnExit: boolean
  readonly fetch: Fetch
  readonly entryDefaults: EntryDefaults
}

/**
 * Adds the defaults. `checkOptions` checks the result.
 *
 * @throws TypeError if the address is invalid, or if there is a key in a browser
 */
export function readOptions(options: ClientOptions, platform: Platform): Settings {
  if (typeof options !== 'object' || options === null) throw new TypeError('the options must be an object')
  const inBrowser = isBrowser(platform.scope)
  if (inBrowser && options.apiKey !== undefined) throw new TypeError(KEY_IN_BROWSER)
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
  return {
    ...defaults,
    ...(given as Partial<Settings>),
    url: logsAddress(options.url),
    apiKey: options.apiKey,
    spool: options.spool,
    // Called without an object: browsers reject another `this` than the window.
    fetch: options.fetch ?? ((url, init) => fetch(url, init)),
    entryDefaults: {
      service: options.service,
      environment: options.environment,
      source: options.source ?? (inBrowser ? 'client' : undefined),
    },
  }
}

const KEY_IN_BROWSER =
  '`apiKey` must not be used in a browser: every user of the page could read it. Leave it out, and let `url` be a backend of your own ' +
  'that adds the key. packages/client/examples/browser-proxy is an example.'
