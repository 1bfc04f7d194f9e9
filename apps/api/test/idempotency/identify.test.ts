import { encodeLogs } from '@sluice/harness/otlp-logs'
import type { LightMyRequestResponse } from 'fastify'
import { describe, expect, it } from 'vitest'
import { hashIdempotencyKey, identify, shardOf } from '../../src/idempotency/idempotency.ts'
import { oneScope } from '../protocols/otlp/otlp-api.ts'
import { freshTestApi } from '../support/shared-api.ts'

const api = freshTestApi()

const byBody = { 'sluice-idempotency': 'body' }
const withKey = { 'idempotency-key': 'k' }
const entry = '{"level":"info","message":"m"}'
const send = (
  url: string,
  sent: Record<string, string>,
  body: string | Buffer = entry,
): Promise<LightMyRequestResponse> =>
  api.post(body, { url, headers: { 'dd-api-key': api.key, 'content-type': 'application/json', ...sent } })
const isReplay = ({ headers }: LightMyRequestResponse): boolean => headers['idempotency-replayed'] === 'true'

/** The body is valid at both, and means something else. */
const different = [
  ['another query', '/services/collector/raw?host=a', '/services/collector/raw?host=b'],
  ['another protocol', '/services/collector/raw', '/api/v2/logs'],
  ['the path of entries', '/api/v2/logs', '/v1/logs'],
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

  it('is the same for both paths of entries, whatever their query', async () => {
    const body = encodeLogs(oneScope({ body: 'm' }))
    const sent = { ...withKey, 'content-type': 'application/x-protobuf' }
    await send('/v1/logs', sent, body)
    for (const url of ['/api/v1/logs', '/v1/logs?a=1', '/api/v1/logs?b=2'])
      expect(isReplay(await send(url, sent, body))).toBe(true)
    expect(api.queue.rows).toHaveLength(1)
  })

  it('does not change the digest of entries, which earlier versions have recorded', () => {
    const sent = { ...withKey, 'content-type': 'application/json; charset=utf-8' }
    const request = { headers: sent, routeOptions: { url: '/v1/logs' }, url: '/v1/logs?a=1' }
    expect(identify(request, Buffer.from(entry))).toEqual({
      key: 'k',
      digest: 'WPF9ZHTDIfQFlJp6bo4DKh',
    })
  })
})

it('the shard of a key is the same in every version, so that another version finds the existing records', () => {
  const keys = ['a', 'b', 'c', 'd', 'e', 'f'].map((key) => hashIdempotencyKey('project', key))
  expect(keys.map((hash) => shardOf(hash, 4))).toEqual([0, 0, 2, 0, 3, 2])
  expect(keys.map((hash) => shardOf(hash, 1))).toEqual([0, 0, 0, 0, 0, 0])
})
