import { readFile } from 'node:fs/promises'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { type ClientOptions, SluiceClient } from '../src/index.ts'
import { defaults, logsAddress } from '../src/options.ts'
import { type GlobalScope, isBrowser, systemPlatform } from '../src/platform.ts'
import { DiskSpool, type DiskSpoolOptions } from '../src/spool/disk-spool.ts'

const host = 'https://logs.example.com'

test.each([
  [host, `${host}/v1/logs`],
  [`${host}/`, `${host}/v1/logs`],
  [`${host}/v1`, `${host}/v1/logs`],
  [`${host}/v1/logs/`, `${host}/v1/logs`],
  [`${host}/api`, `${host}/api/v1/logs`],
  [`${host}/api/v1/logs`, `${host}/api/v1/logs`],
  [`${host}/?tenant=a`, `${host}/v1/logs?tenant=a`],
  ['http://[::1]:3000', 'http://[::1]:3000/v1/logs'],
])('%s is completed to %s', (url, address) => {
  expect(logsAddress(url)).toBe(address)
})

const importScripts = (): void => undefined

test.each<[string, GlobalScope, boolean]>([
  ['a page', { window: { document: {} } }, true],
  ['a web worker', { importScripts, navigator: { userAgent: 'Mozilla/5.0' } }, true],
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
    const options = { url: host, apiKey: 'slk_1' }
    expect(() => new SluiceClient(options, platform)).toThrow(/apiKey.*browser.*examples\/browser-proxy/)
  })

  test('entries go to the own backend without a key, and their source is the client', async () => {
    const requests: unknown[] = []
    const options: ClientOptions = {
      url: host,
      compression: 'none',
      fetch: async (_url, { headers, body }) => {
        requests.push(headers, new TextDecoder().decode(body))
        return Response.json({ success: true, accepted: 1, rejected: 0 }, { status: 202 })
      },
    }
    const client = new SluiceClient(options, platform)
    client.info('clicked')
    expect(await client.close()).toMatchObject({ accepted: 1 })
    const source = expect.stringContaining('"source":"client"') as string
    expect(requests).toEqual([
      expect.not.objectContaining({ authorization: expect.anything() as string }),
      source,
    ])
  })
})

const create = (options: object): SluiceClient =>
  new SluiceClient({ url: 'http://127.0.0.1:9', flushOnExit: false, ...options })

const errorOf = (run: () => unknown): string => {
  try {
    run()
  } catch (error) {
    if (error instanceof TypeError) return `${error.message} ${error.stack}`
  }
  throw new Error('there was no TypeError')
}

const manyNames = Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`name${i}`, i]))
const notNumbers = [NaN, -1, 1.5, '1', null]
const invalid: Readonly<Record<string, readonly unknown[]>> = {
  url: ['', 'logs.example.com', '/v1/logs', 'ftp://logs.example.com', 'https://user:secret@logs.example.com'],
  // With such a key, `fetch` would throw an error that has the key in its message.
  apiKey: ['slk_\nsecret', 'slk_ secret', 'slk_secr…et', 'slk_secret\0', '', null, { key: 'slk_secret' }],
  environment: ['test'],
  source: ['phone'],
  service: [5, 'x'.repeat(257)],
  metadata: ['text', ['a'], null, { text: 'x'.repeat(70_000) }, manyNames],
  fetch: [1],
  spool: [{}, 'folder', null],
  flushOnExit: ['no'],
  overflow: ['drop'],
  compression: ['br'],
  onRejected: ['text'],
  onSettled: ['text'],
  batchEntriesMax: [...notNumbers, 0, 101],
  batchBytesMax: [...notNumbers, Infinity],
  flushIntervalMs: [...notNumbers, Infinity],
  queueEntriesMax: [...notNumbers, 499],
  queueBytesMax: notNumbers,
  requestsInFlightMax: [...notNumbers, 0],
  requestTimeoutMs: [...notNumbers, 0, Infinity],
  retryForMs: notNumbers,
  idempotencyWindowMs: [...notNumbers, 0],
}

test.each(Object.entries(invalid))('an invalid %s is rejected with its name: %j', (name, values) => {
  for (const value of values) {
    const error = errorOf(() => create({ [name]: value }))
    expect(error).toContain(`\`${name}\``)
    expect(error).not.toMatch(/secr/)
  }
})

test.each<[string, readonly unknown[]]>([
  ['directory', ['', 5, undefined, 'a\0b']],
  ['fsync', ['yes']],
  ['bytesMax', [NaN, 1]],
])('an invalid %s of a spool is rejected: %j', (name, values) => {
  for (const value of values) {
    const options = { directory: 'folder', [name]: value } as DiskSpoolOptions
    expect(errorOf(() => new DiskSpool(options))).toContain(`\`${name}\``)
  }
})

test.each([
  ['flush', { timeoutMs: NaN }, '`timeoutMs` must be a number of at least 0'],
  ['close', { timeoutMs: '5' }, '`timeoutMs`'],
  ['close', { remaining: 'never' }, '`remaining` must be one of'],
])('an invalid option of %s is rejected: %o', async (method, options, message) => {
  const client = create({})
  await expect(client[method as 'close'](options as object)).rejects.toThrow(message)
  await client.close()
})

test('valid options are accepted', async () => {
  const metadata = { date: new Date(0), nothing: undefined }
  const numbers = { retryForMs: Infinity, queueEntriesMax: 500 }
  const absent = { fetch: undefined, spool: undefined }
  const client = create({ apiKey: 'slk_~!', source: 'edge', service: '', metadata, ...numbers, ...absent })
  expect(await client.close({ timeoutMs: Infinity })).toMatchObject({ pending: 0 })
})

test('the README names the defaults', async () => {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8')
  for (const [name, value] of Object.entries(defaults)) {
    const [, stated] = new RegExp(`^\\| \`${name}\`\\s+\\| (\\S+)`, 'm').exec(readme) ?? []
    const shown = Number.isFinite(value) ? value.toLocaleString('en-US') : String(value)
    expect(`${name}: ${stated?.replaceAll('`', '')}`).toBe(`${name}: ${shown}`)
  }
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
