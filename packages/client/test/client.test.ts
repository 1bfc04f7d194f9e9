import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type ClientOptions, SluiceClient } from '../src/index.ts'
import { FakeApi } from './support/fake-api.ts'

let api: FakeApi
beforeEach(async () => {
  api = new FakeApi()
  await api.start()
})
afterEach(() => api.stop())

const clientFor = (options: Partial<ClientOptions> = {}): SluiceClient =>
  new SluiceClient({ url: api.url, apiKey: 'slk_test', ...options })

test('sends entries with their level, time, context and fields', async () => {
  const client = clientFor({ service: 'shop', environment: 'production', metadata: { host: 'a' } })
  const child = client.child({ request: 'r1' }, { service: 'billing' })
  client.info('paid', { order: 7 })
  child.warn('slow', { host: 'b' })
  const result = await client.close()
  expect(result).toEqual({ accepted: 2, rejected: 0, dropped: 0, pending: 0, problem: undefined })
  const timestamp = expect.stringMatching(/^\d{4}-.*Z$/) as string
  expect(api.received).toMatchObject([
    {
      url: '/v1/logs',
      headers: { authorization: 'Bearer slk_test', 'content-type': 'application/json' },
    },
  ])
  expect(api.received[0]?.logs).toEqual([
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

describe('an error', () => {
  test('as the message becomes stack and metadata', async () => {
    const client = clientFor()
    const error = new TypeError('no', { cause: new Error('why') })
    client.error(error)
    await client.close()
    expect(api.received[0]?.logs).toMatchObject([
      {
        level: 'error',
        message: 'no',
        stack: error.stack,
        metadata: { error: { name: 'TypeError', message: 'no', cause: { message: 'why' } } },
      },
    ])
  })
})
