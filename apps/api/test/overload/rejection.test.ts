import { HttpConnection } from '@sluice/harness'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { QueueFullError, QueueUnavailableError } from '@sluice/queue'
import { problemCode } from '../support/problem.ts'
import { buildTestApi, type TestApi } from '../support/test-api.ts'

const entry = { level: 'info', message: 'm' }
let api: TestApi

beforeEach(() => {
  api = buildTestApi()
})

afterEach(async () => {
  await api.close()
})

describe('an overloaded API', () => {
  it('rejects entries with Retry-After, and enqueues nothing', async () => {
    await api.signals.set('queue_depth', 90)
    const response = await api.post(entry)
    expect(problemCode(response)).toBe('overloaded')
    expect(response.headers['retry-after']).toBe('5')
    expect(api.queue.adds).toEqual([])
    await api.signals.set('queue_depth', 0)
    expect((await api.post(entry)).statusCode).toBe(202)
  })

  it('still answers an invalid key with 401', async () => {
    await api.signals.set('queue_depth', 90)
    expect(problemCode(await api.post(entry, { headers: { authorization: 'Bearer unknown' } }))).toBe(
      'unauthorized',
    )
    expect(api.signals.monitor.status.refused.queue_depth).toBe(0)
  })

  it('stays alive and ready, because other processes are overloaded as well', async () => {
    await api.signals.set('redis_memory', 90)
    for (const url of ['/livez', '/readyz']) expect((await api.app.inject(url)).statusCode).toBe(200)
  })

  it.each([
    ['that has not arrived', 'Content-Length: 1000'],
    ['that waits for 100 Continue', 'Expect: 100-continue\r\nContent-Length: 1000'],
    ['that does not end', 'Transfer-Encoding: chunked'],
  ])('answers before a body %s', async (_name, lines) => {
    await api.signals.set('event_loop_delay', 90)
    await api.app.listen({ host: '127.0.0.1', port: 0 })
    const connection = await HttpConnection.open((api.app.server.address() as AddressInfo).port)
    connection.write(
      `POST /v1/logs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${api.key}\r\nContent-Type: application/json\r\n${lines}\r\n\r\n`,
    )
    await expect.poll(() => connection.responses.length, { timeout: 3_000 }).toBe(1)
    expect(connection.received).not.toContain('100 Continue')
    expect(connection.responses[0]).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
    connection.destroy()
  })
})

describe('a Redis that reports that it is full', () => {
  it('causes 503 for the request, and for the next one without another add', async () => {
    api.queue.holding = true
    const pending = api.post(entry)
    await expect.poll(() => api.queue.adds).toHaveLength(1)
    api.queue.adds[0]?.fail(new QueueFullError('full'))
    expect(problemCode(await pending)).toBe('overloaded')
    expect(problemCode(await api.post(entry))).toBe('overloaded')
    expect(api.queue.adds).toHaveLength(1)
    expect(api.signals.monitor.status.refused.redis_memory).toBe(2)
  })
})

it('an unavailable Redis is not an overload', async () => {
  api.queue.holding = true
  const pending = api.post(entry)
  await expect.poll(() => api.queue.adds).toHaveLength(1)
  api.queue.adds[0]?.fail(new QueueUnavailableError('down'))
  expect(problemCode(await pending)).toBe('queue_unavailable')
  expect(api.signals.monitor.status.overloaded).toBe(false)
})
