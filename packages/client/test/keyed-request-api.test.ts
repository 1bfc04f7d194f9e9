import { afterEach, beforeEach, expect, test } from 'vitest'
import { buildTestApi, type TestApi } from '../../../apps/api/test/support/test-api.ts'
import { SluiceClient } from '../src/index.ts'

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

const texts = ['{"level":"info","message":"one"}', '{"level":"fatal","message":"two"}']

test('the API stores a request once that is made again with the same key, as after a crash', async () => {
  const first = await client.sendRequest(texts, 'file:0')
  const again = await client.sendRequest(texts, 'file:0')
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
  await client.sendRequest(texts.slice(0, 1), 'file:0')
  const other = await client.sendRequest(texts, 'file:0')
  expect(other).toMatchObject({
    outcome: 'rejected',
    rejections: [
      { index: 0, error: { code: 'idempotency_key_reused' } },
      { index: 1, error: { code: 'idempotency_key_reused' } },
    ],
  })
  expect(api.queue.rows).toHaveLength(1)
})
