import { encodeLogs } from '@sluice/harness/otlp-logs'
import type { LightMyRequestResponse } from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { identifyRequest } from '../../src/idempotency/idempotency-record.ts'
import { oneScope } from '../protocols/otlp/otlp-api.ts'
import { buildTestApi, type TestApi } from '../support/test-api.ts'

let api: TestApi

beforeEach(() => {
  api = buildTestApi()
})

afterEach(async () => {
  await api.close()
})

const withKey = { 'idempotency-key': 'k' }
const byBody = { 'sluice-idempotency': 'body' }
const entry = '{"level":"info","message":"m"}'
const send = (
  url: string,
  headers: Record<string, string>,
  body: string | Buffer = entry,
): Promise<LightMyRequestResponse> =>
  api.post(body, { url, headers: { 'dd-api-key': api.key, 'content-type': 'application/json', ...headers } })
const isReplay = ({ headers }: LightMyRequestResponse): boolean => headers['idempotency-replayed'] === 'true'

/** The body is valid at both, and means something else. */
const different = [
  ['another query', '/services/collector/raw?host=a', '/services/collector/raw?host=b'],
  ['no query', '/services/collector/raw?host=a', '/services/collector/raw'],
  ['another protocol', '/services/collector/raw', '/api/v2/logs'],
  ['the path of entries', '/api/v2/logs', '/v1/logs'],
  ['the path of a protocol', '/v1/logs', '/api/v2/logs'],
] as const

describe('the target of a request', () => {
  it.each(different)('belongs to what a key stands for: %s', async (_what, first, second) => {
    expect((await send(first, withKey)).statusCode).toBeLessThan(300)
    const answer = await send(second, withKey)
    expect([answer.statusCode, isReplay(answer)]).toEqual([422, false])
    expect(api.queue.rows).toHaveLength(1)
  })

  it.each(different)('belongs to the key that is the body: %s', async (_what, first, second) => {
    for (const url of [first, second]) {
      const answer = await send(url, byBody)
      expect([answer.statusCode < 300, isReplay(answer)]).toEqual([true, false])
    }
    expect(api.queue.rows).toHaveLength(2)
    for (const url of [first, second]) expect(isReplay(await send(url, byBody))).toBe(true)
    expect(api.queue.rows).toHaveLength(2)
  })

  it.each([
    ['an entry', entry, 'application/json'],
    ['OTLP', encodeLogs(oneScope({ body: 'm' })), 'application/x-protobuf'],
  ])('is the same for both paths of entries, whatever their query: %s', async (_what, body, type) => {
    const headers = { ...withKey, 'content-type': type }
    await send('/v1/logs', headers, body)
    for (const url of ['/api/v1/logs', '/v1/logs?a=1', '/api/v1/logs?b=2'])
      expect(isReplay(await send(url, headers, body))).toBe(true)
    expect(api.queue.rows).toHaveLength(1)
  })

  it('does not change the digest of entries, which earlier versions have recorded', () => {
    const headers = { ...withKey, 'content-type': 'application/json; charset=utf-8' }
    expect(identifyRequest(headers, Buffer.from(entry), '')).toEqual({
      key: 'k',
      digest: 'WPF9ZHTDIfQFlJp6bo4DKh',
    })
  })
})
