import { describe, expect, test } from 'vitest'
import { SluiceClient } from '../src/index.ts'
import { DiskSpool } from '../src/spool/disk-spool.ts'

const create = (options: object): SluiceClient =>
  new SluiceClient({ url: 'http://127.0.0.1:9', flushOnExit: false, ...options })

const errorOf = (run: () => unknown): Error => {
  try {
    run()
  } catch (error) {
    return error as Error
  }
  throw new Error('nothing was thrown')
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
    expect(error).toBeInstanceOf(TypeError)
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
    const error = errorOf(() => create({ [name]: value }))
    expect(error).toBeInstanceOf(TypeError)
    expect(error.message).toContain(`\`${name}\``)
  })

  test.each<[string, object]>([
    ['directory', { directory: '' }],
    ['directory', { directory: 5 }],
    ['directory', { directory: undefined }],
    ['directory', { directory: 'a\u0000b' }],
    ['fsync', { directory: 'folder', fsync: 'yes' }],
    ['bytesMax', { directory: 'folder', bytesMax: NaN }],
  ])('of a spool, %s: %o', (name, options) => {
    const error = errorOf(() => new DiskSpool(options as { directory: string }))
    expect(error).toBeInstanceOf(TypeError)
    expect(error.message).toContain(`\`${name}\``)
  })

  test.each([
    ['flush', { timeoutMs: NaN }],
    ['flush', { timeoutMs: '5' }],
    ['close', { timeoutMs: NaN }],
    ['close', { timeoutMs: -1 }],
  ])('of a call of %s: %o', async (method, options) => {
    const client = create({})
    await expect(client[method as 'flush'](options as { timeoutMs: number })).rejects.toThrow(
      '`timeoutMs` must be a number of at least 0',
    )
    await client.close()
  })

  test('of a close, `remaining`', async () => {
    const client = create({})
    await expect(client.close({ remaining: 'never' as 'retry' })).rejects.toThrow(
      '`remaining` must be one of',
    )
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
