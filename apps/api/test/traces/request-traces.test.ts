import { RecordedTraces } from '@sluice/harness/recorded-traces'
import { QueueUnavailableError } from '@sluice/queue'
import { SettingsError } from '@sluice/runtime'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { readApiConfig } from '../../src/config.ts'
import { requestTraces, TRACED_PER_S_MAX } from '../../src/traces/request-traces.ts'
import { rebuild } from '../support/shared-api.ts'
import { buildTestApi, type TestApi } from '../support/test-api.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'
const sampled = { traceparent: `00-${traceId}-${spanId}-01` }
const notSampled = { traceparent: `00-${traceId}-${spanId}-00` }
const entry = { level: 'info', message: 'hello' }

let traces: RecordedTraces
const api = {} as TestApi
let nowMs: number
/** The random number that decides about a request without a traceparent. Such requests are traced below 0.5. */
let random: number

beforeEach(() => {
  traces = new RecordedTraces()
  nowMs = 0
  random = 0.5
  buildTestApi(
    {
      chunkTraces: traces,
      traces: requestTraces({ traces, sampleRatio: 0.5, random: () => random, monotonicMs: () => nowMs }),
    },
    api,
  )
})

afterEach(() => api.close())

async function post(headers: Record<string, string> = sampled, body: object = entry): Promise<number> {
  return (await api.post(body, { headers })).statusCode
}

describe('a request', () => {
  it('whose caller traces it is traced as a part of its trace', async () => {
    const body = JSON.stringify([entry, entry])
    await api.post(body, { headers: { ...sampled, 'x-request-id': 'the-request' } })
    const [request] = traces.named('POST /v1/logs')
    expect(request?.options).toMatchObject({
      kind: 'server',
      parent: { traceId, spanId },
      startMs: expect.any(Number),
    })
    expect(request?.attributes).toEqual({
      'http.request.method': 'POST',
      'http.route': '/v1/logs',
      'http.response.status_code': 202,
      'error.type': undefined,
      'sluice.request.id': 'the-request',
      'sluice.project.id': 'demo',
      'sluice.request.entries': 2,
      'sluice.request.bytes': body.length,
    })
    expect(request?.ended).toBe('ok')
  })

  it('whose caller does not trace it is not traced, whatever the part that is traced', async () => {
    random = 0
    expect(await post(notSampled)).toBe(202)
    expect(traces.spans).toEqual([])
    expect(api.queue.adds[0]?.chunk).not.toHaveProperty('trace')
  })

  it('with an invalid traceparent is traced by chance, and begins a trace', async () => {
    const headers = { traceparent: `00-${traceId}-${spanId}-1` }
    expect(await post(headers)).toBe(202)
    expect(traces.spans).toEqual([])
    random = 0.499
    expect(await post(headers)).toBe(202)
    expect(traces.named('POST /v1/logs')[0]?.options.parent).toBeUndefined()
  })

  it('that is rejected is traced, with its reason', async () => {
    expect(await post(sampled, { level: 'none' })).toBe(400)
    const [request] = traces.spans
    expect(request).toMatchObject({ ended: 'ok', attributes: { 'error.type': 'invalid_entry' } })
    expect(traces.named('chunk')).toEqual([])
  })

  it('without a response in time is an error', async () => {
    api.queue.holding = true
    const answer = post()
    const add = await vi.waitUntil(() => api.queue.adds[0])
    add.fail(new QueueUnavailableError('no answer'))
    expect(await answer).toBe(503)
    const [request] = traces.named('POST /v1/logs')
    const [chunk] = traces.named('chunk')
    expect(request?.attributes['error.type']).toBe('queue_unavailable')
    expect(chunk?.attributes['error.type']).toBe('QueueUnavailableError')
    expect([request?.ended, chunk?.ended]).toEqual(['error', 'error'])
  })

  it('above the limit per second is not traced', async () => {
    for (let sent = 0; sent < TRACED_PER_S_MAX + 3; sent += 1) expect(await post()).toBe(202)
    expect(traces.named('POST /v1/logs')).toHaveLength(TRACED_PER_S_MAX)
    nowMs = 1_000
    await post()
    expect(traces.named('POST /v1/logs')).toHaveLength(TRACED_PER_S_MAX + 1)
  })
})

describe('a chunk', () => {
  it('is linked to its traced requests, and they to it', async () => {
    await Promise.all([
      post({ 'idempotency-key': 'secret-key-a', ...sampled }),
      post({ 'idempotency-key': 'secret-key-b', ...notSampled }),
      post({ 'idempotency-key': 'secret-key-c', ...sampled }, [entry, entry]),
    ])
    const requests = traces.named('POST /v1/logs')
    expect(requests).toHaveLength(2)
    const [chunk, ...others] = traces.named('chunk')
    expect(others).toEqual([])
    expect(chunk?.options).toMatchObject({ kind: 'producer' })
    expect(chunk?.options.parent).toBeUndefined()
    expect(chunk?.links).toEqual(requests.map(({ context }) => context))
    for (const request of requests) expect(request.links).toEqual([chunk?.context])
    const [add] = api.queue.adds
    expect(chunk?.attributes).toEqual({
      'sluice.chunk.id': add?.chunkId,
      'sluice.chunk.rows': 4,
      'sluice.chunk.bytes': add?.chunk.bytes,
      'sluice.chunk.traced_requests': 2,
      'sluice.chunk.result': 'added',
      'sluice.shard': 0,
    })
    expect(chunk?.ended).toBe('ok')
    const { traceId: chunkTrace, spanId: chunkSpan } = chunk?.context ?? {}
    expect(add?.chunk.trace).toBe(`00-${chunkTrace}-${chunkSpan}-01`)
    expect(JSON.stringify(traces.spans)).not.toMatch(/secret-key|hello|slk_/)
  })
})

it('nothing is traced while traces are off', async () => {
  await rebuild(api, {})
  expect(await post()).toBe(202)
  expect(await post({ ...sampled, 'idempotency-key': 'a-key' })).toBe(202)
  for (const { chunk } of api.queue.adds) expect(chunk).not.toHaveProperty('trace')
})

it.each(['0', '0.25', '1.0'])('a part of %s may be traced', (text) => {
  expect(readApiConfig({ OTEL_TRACES_SAMPLER_ARG: text }).OTEL_TRACES_SAMPLER_ARG).toBe(text)
})

it.each(['1.1', '-0.5', 'all', '.5'])('a part of %s is rejected', (text) => {
  expect(() => readApiConfig({ OTEL_TRACES_SAMPLER_ARG: text })).toThrow(SettingsError)
})

it.each(['collector:4318', 'grpc://collector:4317', 'http://'])('the endpoint %s is rejected', (url) => {
  expect(() => readApiConfig({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url })).toThrow(SettingsError)
})
