import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type ClientOptions, SluiceClient } from '../src/index.ts'
import { FakeApi } from './support/fake-api.ts'
import { buildTestApi, type TestApi } from '../../../apps/api/test/support/test-api.ts'

let server: FakeApi
beforeEach(async () => {
  server = new FakeApi()
  await server.start()
})
afterEach(() => server.stop())

const clientFor = (options: Partial<ClientOptions> = {}): SluiceClient =>
  new SluiceClient({ url: server.url, apiKey: 'slk_test', ...options })

test('sends entries with their level, time, context and fields', async () => {
  const client = clientFor({ service: 'shop', environment: 'production', metadata: { host: 'a' } })
  const child = client.child({ request: 'r1' }, { service: 'billing' })
  client.info('paid', { order: 7 })
  child.warn('slow', { host: 'b' })
  const result = await client.close()
  expect(result).toEqual({ accepted: 2, rejected: 0, dropped: 0, pending: 0, problem: undefined })
  const timestamp = expect.stringMatching(/^\d{4}-.*Z$/) as string
  expect(server.received).toMatchObject([
    {
      url: '/v1/logs',
      headers: { authorization: 'Bearer slk_test', 'content-type': 'application/json' },
    },
  ])
  expect(server.received[0]?.logs).toEqual([
    {
      level: 'info',
      message: 'paid',
      timestamp,
      service: 'shop',
      environment: 'production',
      metadata: { host: 'a', order: 7 },
    },
    {
      level: 'warn',
      message: 'slow',
      timestamp,
      service: 'billing',
      environment: 'production',
      metadata: { host: 'b', request: 'r1' },
    },
  ])
})

describe('a request with a key of the caller', () => {
  let api: TestApi
  let client: SluiceClient
  beforeEach(async () => {
    api = buildTestApi()
    const url = await api.app.listen({ host: '127.0.0.1', port: 0 })
    client = new SluiceClient({ url, apiKey: api.key, flushOnExit: false })
  })
  afterEach(async () => {
    await client.close()
    await api.close()
  })

  const jsons = ['{"level":"info","message":"one"}', '{"level":"fatal","message":"two"}']

  test('the API stores a request once that is made again with the same key, as after a crash', async () => {
    const first = await client.sendRequest(jsons, 'file:0')
    const again = await client.sendRequest(jsons, 'file:0')
    expect(first).toMatchObject({
      outcome: 'answered',
      accepted: 1,
      rejected: 1,
      rejections: [{ index: 1, error: { path: '/level', code: 'not_allowed' } }],
    })
    expect(again).toMatchObject({ outcome: 'answered', accepted: 1, rejected: 1 })
    expect(api.queue.rows).toHaveLength(1)
  })

  test('the API rejects another request with the same key', async () => {
    await client.sendRequest(jsons.slice(0, 1), 'file:0')
    const other = await client.sendRequest(jsons, 'file:0')
    expect(other).toMatchObject({
      outcome: 'rejected',
      rejections: [
        { index: 0, error: { code: 'idempotency_key_reused' } },
        { index: 1, error: { code: 'idempotency_key_reused' } },
      ],
    })
    expect(api.queue.rows).toHaveLength(1)
  })
})
