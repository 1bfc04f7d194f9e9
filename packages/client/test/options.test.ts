import { expect, test, describe, expectTypeOf } from 'vitest'
import { logsAddress, defaults } from '../src/options.ts'
import { type GlobalScope, isBrowser, systemPlatform } from '../src/platform.ts'
import { SluiceClient, type ClientOptions } from '../src/index.ts'
import { DiskSpool } from '../src/spool/disk-spool.ts'
import { readFile } from 'node:fs/promises'

test.each([
  ['https://logs.example.com', 'https://logs.example.com/v1/logs'],
  ['https://logs.example.com/', 'https://logs.example.com/v1/logs'],
  ['https://logs.example.com/v1', 'https://logs.example.com/v1/logs'],
  ['https://logs.example.com/v1/', 'https://logs.example.com/v1/logs'],
  ['https://logs.example.com/v1/logs', 'https://logs.example.com/v1/logs'],
  ['https://logs.example.com/v1/logs/', 'https://logs.example.com/v1/logs'],
  ['https://logs.example.com/api', 'https://logs.example.com/api/v1/logs'],
  ['https://logs.example.com/api/v1/logs', 'https://logs.example.com/api/v1/logs'],
  ['https://logs.example.com/v1/v1/logs', 'https://logs.example.com/v1/v1/logs'],
  ['https://logs.example.com/?tenant=a', 'https://logs.example.com/v1/logs?tenant=a'],
  ['http://[::1]:3000', 'http://[::1]:3000/v1/logs'],
])('%s is completed to %s', (url, address) => {
  expect(logsAddress(url)).toBe(address)
})

test.each(['', 'logs.example.com', '/v1/logs', 'ftp://logs.example.com', 'localhost:3000'])(
  '%j is rejected',
  (url) => {
    expect(() => logsAddress(url)).toThrow(TypeError)
  },
)

test('a password in the address is rejected, and not repeated in the message', () => {
  expect(() => logsAddress('https://user:secret@logs.example.com')).toThrow(
    expect.objectContaining({ message: expect.not.stringContaining('secret') as string }),
  )
})

const importScripts = (): void => undefined

test.each<[string, GlobalScope, boolean]>([
  ['a page', { window: { document: {} } }, true],
  ['a web worker', { importScripts }, true],
  ['a web worker with a name', { importScripts, navigator: { userAgent: 'Mozilla/5.0' } }, true],
  ['Node', globalThis, false],
  ['an older Deno, which has a window without a document', { window: {}, Deno: {} }, false],
  ['a worker of Deno', { importScripts, Deno: {} }, false],
  ['a worker of Bun', { importScripts, Bun: {} }, false],
  ['a worker of Cloudflare', { importScripts, navigator: { userAgent: 'Cloudflare-Workers' } }, false],
])('%s is recognised as a browser or not', (_name, scope, expected) => {
  expect(isBrowser(scope)).toBe(expected)
})

describe('in a browser', () => {
  const platform = { ...systemPlatform(), scope: { window: { document: {} } } }

  test('an API key is rejected, and the message names the example of a proxy', () => {
    expect(() => new SluiceClient({ url: 'https://logs.example.com', apiKey: 'slk_1' }, platform)).toThrow(
      /apiKey.*browser.*examples\/browser-proxy/,
    )
  })

  test('entries go to the own backend, and their source is the client', async () => {
    const requests: { url: string; init: RequestInit }[] = []
    const client = new SluiceClient(
      {
        url: 'https://shop.example.com/telemetry',
        compression: 'none',
        fetch: async (url, init) => {
          requests.push({ url, init })
          return Response.json({ success: true, accepted: 1, rejected: 0 }, { status: 202 })
        },
      },
      platform,
    )
    client.info('clicked')
    expect(await client.close()).toMatchObject({ accepted: 1 })
    const [{ url, init } = { url: '', init: {} }] = requests
    expect(url).toBe('https://shop.example.com/telemetry/v1/logs')
    expect(init.headers).not.toHaveProperty('authorization')
    expect(new TextDecoder().decode(init.body as Uint8Array)).toContain('"source":"client"')
  })
})

const create = (options: object): SluiceClient =>
  new SluiceClient({ url: 'http://127.0.0.1:9', flushOnExit: false, ...options })

const errorOf = (run: () => unknown): TypeError => {
  try {
    run()
  } catch (error) {
    if (error instanceof TypeError) return error
  }
  throw new Error('there was no TypeError')
}

describe('an API key that `fetch` would reject with the key in its message', () => {
  test.each([
    ['a line break', 'slk_secret\n'],
    ['a line break within', 'slk_\r\nsecret'],
    ['a space', 'slk_ secret'],
    ['a character beyond ASCII', 'slk_secr…et'],
    ['a control character', 'slk_secret\u0000'],
    ['no characters', ''],
    ['another type', { key: 'slk_secret' }],
    ['null', null],
  ])('is rejected without its value: %s', (_name, apiKey) => {
    const error = errorOf(() => create({ apiKey }))
    expect(error.message).toContain('`apiKey`')
    expect(`${error.message} ${error.stack}`).not.toMatch(/secr/)
  })
})

describe('an option is rejected with its name', () => {
  test.each<[string, unknown]>([
    ['environment', 'test'],
    ['source', 'phone'],
    ['service', 5],
    ['service', 'x'.repeat(257)],
    ['metadata', 'text'],
    ['metadata', ['a']],
    ['metadata', null],
    ['metadata', { text: 'x'.repeat(70_000) }],
    ['metadata', Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`name${i}`, i]))],
    ['fetch', 1],
    ['spool', {}],
    ['spool', 'folder'],
    ['spool', null],
    ['flushOnExit', 'no'],
    ['overflow', 'drop'],
    ['compression', 'br'],
    ...['onRejected', 'onDropped', 'onRetry', 'onError', 'onSettled'].map((name): [string, unknown] => [
      name,
      'text',
    ]),
    ...['batchEntriesMax', 'batchBytesMax', 'flushIntervalMs', 'queueEntriesMax', 'queueBytesMax'].flatMap(
      (name) => [NaN, -1, 1.5, Infinity, '1'].map((value): [string, unknown] => [name, value]),
    ),
    ...['requestsInFlightMax', 'requestTimeoutMs', 'idempotencyWindowMs'].flatMap((name) =>
      [NaN, -1, 0, Infinity, null].map((value): [string, unknown] => [name, value]),
    ),
    ['retryForMs', NaN],
    ['retryForMs', -1],
    ['retryForMs', '1000'],
  ])('%s: %o', (name, value) => {
    expect(errorOf(() => create({ [name]: value })).message).toContain(`\`${name}\``)
  })

  test.each<[string, object]>([
    ['directory', { directory: '' }],
    ['directory', { directory: 5 }],
    ['directory', { directory: undefined }],
    ['directory', { directory: 'a\u0000b' }],
    ['fsync', { directory: 'folder', fsync: 'yes' }],
    ['bytesMax', { directory: 'folder', bytesMax: NaN }],
  ])('of a spool, %s: %o', (name, options) => {
    const spoolOptions = options as { directory: string }
    expect(errorOf(() => new DiskSpool(spoolOptions)).message).toContain(`\`${name}\``)
  })

  test.each([
    ['flush', { timeoutMs: NaN }, '`timeoutMs` must be a number of at least 0'],
    ['flush', { timeoutMs: '5' }, '`timeoutMs`'],
    ['close', { timeoutMs: NaN }, '`timeoutMs`'],
    ['close', { timeoutMs: -1 }, '`timeoutMs`'],
    ['close', { remaining: 'never' }, '`remaining` must be one of'],
  ])('of a call of %s: %o', async (method, options, message) => {
    const client = create({})
    await expect(client[method as 'close'](options as object)).rejects.toThrow(message)
    await client.close()
  })
})

test('valid options are accepted', async () => {
  const client = create({
    apiKey: 'slk_~!',
    retryForMs: Infinity,
    environment: 'staging',
    source: 'edge',
    service: '',
    metadata: { date: new Date(0), nothing: undefined },
    fetch: undefined,
    spool: undefined,
  })
  expect(await client.close({ timeoutMs: Infinity })).toMatchObject({ pending: 0 })
})

test.each(Object.entries(defaults))('the README names the default of %s: %s', async (name, value) => {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8')
  const [, stated] = new RegExp(`^\\| \`${name}\`\\s+\\| (\\S+)`, 'm').exec(readme) ?? []
  const shown = Number.isFinite(value) ? value.toLocaleString('en-US') : String(value)
  expect(stated?.replaceAll('`', '')).toBe(shown)
})

/** Like the `fetch` of a library, whose types of requests and responses differ from the global ones. */
type LibraryFetch = (
  url: string | URL,
  init?: {
    method?: string
    body?: Uint8Array | string | null
    signal?: AbortSignal | null
    dispatcher?: object
  },
) => Promise<{
  status: number
  headers: { get(name: string): string | null }
  body: AsyncIterable<Uint8Array>
  text(): Promise<string>
}>

// `npm run types` checks it, not the test run.
test('the global `fetch` and the `fetch` of a library are valid options', () => {
  expectTypeOf<typeof fetch>().toExtend<ClientOptions['fetch']>()
  expectTypeOf<LibraryFetch>().toExtend<ClientOptions['fetch']>()
})
