import { limits } from '@sluice/schema/limits'
import { encodeEntry, LimitError } from './encode.ts'
import type { Environment, Source } from './entry.ts'
import type { Hooks } from './hooks.ts'
import { copyFields, plainMetadata } from './metadata.ts'
import { HOUR_MS, isBrowser, type Platform } from './platform.ts'
import type { Spool } from './spool.ts'

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

/** What the client needs of a `fetch`: those of libraries have other properties than the global one. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchResponse>

export interface FetchInit {
  readonly method: 'POST'
  readonly headers: Record<string, string>
  readonly body: Uint8Array<ArrayBuffer>
  readonly redirect: 'manual'
  readonly signal: AbortSignal
}

export interface FetchResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  /** Read up to a limit if it is a web stream. */
  readonly body: unknown
  text(): Promise<string>
}

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
  batchEntriesMax: limits.entriesPerRequestMax,
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
  /** The API responds within 2 s. A slow connection may need longer for a large request. */
  requestTimeoutMs: 30_000,
  /** Without an end: the size of the queue limits what is retried. */
  retryForMs: Infinity,
  /** The default of the API. */
  idempotencyWindowMs: HOUR_MS,
  flushOnExit: true,
} as const

/** Options with all defaults. `url` is the address of the logs resource. */
export type Settings = {
  readonly [Name in keyof typeof defaults]: NonNullable<ClientOptions[Name]>
} & {
  readonly url: string
  readonly apiKey: string | undefined
  readonly spool: Spool | undefined
  readonly fetch: Fetch
  readonly entryDefaults: EntryDefaults
}

/**
 * Adds the defaults, and checks all options.
 *
 * @throws TypeError that names the option, also if there is a key in a browser. Its message never has the value of the key
 */
export function readOptions(options: ClientOptions, platform: Platform): Settings {
  if (typeof options !== 'object' || options === null) throw new TypeError('the options must be an object')
  const inBrowser = isBrowser(platform.scope)
  if (inBrowser && options.apiKey !== undefined) throw new TypeError(KEY_IN_BROWSER)
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
  const { url, apiKey, spool, service, environment } = options
  const settings: Settings = {
    ...defaults,
    ...(given as Partial<Settings>),
    url: logsAddress(url),
    apiKey,
    spool,
    // Called without an object: browsers reject another `this` than the window.
    fetch: options.fetch ?? ((address, init) => fetch(address, init)),
    entryDefaults: { service, environment, source: options.source ?? (inBrowser ? 'client' : undefined) },
  }
  checkValues(settings)
  checkEntryOptions(options, settings)
  return settings
}

const KEY_IN_BROWSER =
  '`apiKey` must not be used in a browser: every user of the page could read it. Leave it out, and let `url` be a backend of your own ' +
  'that adds the key. examples/browser-proxy is an example.'

/** @param url the address of the API, with or without `/v1` or `/v1/logs` at its end */
export function logsAddress(url: string): string {
  check(URL.canParse(url), '`url` must be an address such as https://logs.example.com')
  const { protocol, username, password, origin, pathname, search } = new URL(url)
  check(/^https?:$/.test(protocol), '`url` must start with http:// or https://')
  // `fetch` rejects such addresses. The address is not part of the message: it has a password.
  check(`${username}${password}` === '', '`url` must not contain a user or a password')
  const path = pathname.replace(/\/+$/, '').replace(/\/v1(\/logs)?$/, '')
  return `${origin}${path}/v1/logs${search}`
}

/** Whether a value is valid, and what follows "must be" in the error otherwise. */
type Rule = readonly [isValid: (value: unknown) => boolean, expected: string]

const integer = (min: number, max = Number.MAX_SAFE_INTEGER): Rule => [
  (value) => Number.isInteger(value) && Number(value) >= min && Number(value) <= max,
  `an integer from ${min} to ${max}`,
]
const oneOf = (...values: readonly unknown[]): Rule => [
  (value) => values.includes(value),
  `one of ${values.join(', ')}`,
]
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
const aFunction: Rule = [(value) => typeof value === 'function', 'a function']

/** Visible ASCII. For other characters, `fetch` throws an error with the whole header in its message. */
const KEY = /^[!-~]+$/

function rulesOf({ requestsInFlightMax, batchEntriesMax, batchBytesMax }: Settings): Record<string, Rule> {
  // While requests are in flight, there is room for another one. So a full queue always has something that can be dropped.
  const batches = requestsInFlightMax + 1
  return {
    batchEntriesMax: integer(1, limits.entriesPerRequestMax),
    batchBytesMax: integer(1, limits.bodyBytesMax / 2),
    flushIntervalMs: integer(0, HOUR_MS),
    requestsInFlightMax: integer(1, 100),
    queueEntriesMax: integer(batches * batchEntriesMax),
    queueBytesMax: integer(batches * batchBytesMax),
    requestTimeoutMs: integer(1, HOUR_MS),
    retryForMs: [(value) => value === Infinity || integer(0)[0](value), integer(0)[1]],
    idempotencyWindowMs: integer(1_000),
    overflow: oneOf('drop-oldest', 'drop-newest'),
    compression: oneOf('auto', 'gzip', 'none'),
    flushOnExit: oneOf(true, false),
    apiKey: [
      (value) => typeof value === 'string' && KEY.test(value),
      'visible ASCII characters, without spaces and line breaks',
    ],
    spool: [(value) => isObject(value) && 'hasRoomFor' in value, 'a DiskSpool'],
    metadata: [(value) => isObject(value) && !Array.isArray(value), 'an object'],
    fetch: aFunction,
    onRejected: aFunction,
    onDropped: aFunction,
    onRetry: aFunction,
    onError: aFunction,
    onSettled: aFunction,
  }
}

/** Applications without types may pass anything. */
function checkValues(settings: Settings): void {
  for (const [name, [isValid, expected]] of Object.entries(rulesOf(settings))) {
    const value: unknown = settings[name as keyof Settings]
    if (value !== undefined) check(isValid(value), `\`${name}\` must be ${expected}`)
  }
}

function check(isValid: boolean, message: string): void {
  if (!isValid) throw new TypeError(message)
}

/** Rejects default fields that would make every entry invalid. */
function checkEntryOptions({ metadata: given = {} }: ClientOptions, { entryDefaults }: Settings): void {
  try {
    const { metadata } = plainMetadata({}, copyFields(given), undefined)
    encodeEntry({ level: 'info', message: '', ...entryDefaults, metadata })
  } catch (error) {
    if (!(error instanceof LimitError)) throw error
    const { path, message } = error.entryError
    throw new TypeError(`\`${path.slice(1)}\` ${message}`, { cause: error })
  }
}
