import { afterEach, beforeEach, expect, test } from 'vitest'
import { type ClientOptions, SluiceClient } from '../src/index.ts'
import { FakeApi } from './support/fake-api.ts'

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
