import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { QueueUnavailableError } from '../../src/chunks/chunk-queue.ts'
import { OverloadedError } from '../../src/overload/overloaded-error.ts'
import { problemCode } from '../support/problem.ts'
import { RawConnection } from '../support/raw-http.ts'
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
  it('refuses entries with a time to try again, and enqueues nothing', async () => {
    await api.signals.set('queue_depth', 90)
    const response = await api.post(entry)
    expect(problemCode(response)).toBe('overloaded')
    expect(response.headers['retry-after']).toBe('5')
    expect(api.queue.adds).toEqual([])
    await api.signals.set('queue_depth', 0)
    expect((await api.post(entry)).statusCode).toBe(202)
  })

  it('tells a bad key what it tells it otherwise', async () => {
    await api.signals.set('queue_depth', 90)
    expect(problemCode(await api.post(entry, { headers: { authorization: 'Bearer nobody' } }))).toBe(
      'unauthorized',
    )
    expect(api.signals.monitor.status.refused.queue_depth).toBe(0)
  })

  it('lives and is ready: others are not better off', async () => {
    await api.signals.set('redis_memory', 90)
    for (const url of ['/livez', '/readyz']) expect((await api.app.inject(url)).statusCode).toBe(200)
  })

  it.each([
    ['that is not sent', 'Content-Length: 1000'],
    ['that waits to be asked for', 'Expect: 100-continue\r\nContent-Length: 1000'],
    ['without an end', 'Transfer-Encoding: chunked'],
  ])('answers before a body %s', async (_name, lines) => {
    await api.signals.set('event_loop_delay', 90)
    await api.app.listen({ host: '127.0.0.1', port: 0 })
    const connection = await RawConnection.open((api.app.server.address() as AddressInfo).port)
    connection.write(
      `POST /v1/logs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${api.key}\r\nContent-Type: application/json\r\n${lines}\r\n\r\n`,
    )
    await expect.poll(() => connection.responses.length, { timeout: 3_000 }).toBe(1)
    expect(connection.received).not.toContain('100 Continue')
    expect(connection.responses[0]).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
    connection.destroy()
  })
})

describe('a Redis that says that it is full', () => {
  it('makes 503 of the request, and has the next refused without asking it', async () => {
    api.queue.holding = true
    const pending = api.post(entry)
    await expect.poll(() => api.queue.adds).toHaveLength(1)
    api.queue.adds[0]?.fail(new OverloadedError('redis_memory', 'full'))
    expect(problemCode(await pending)).toBe('overloaded')
    expect(problemCode(await api.post(entry))).toBe('overloaded')
    expect(api.queue.adds).toHaveLength(1)
    expect(api.signals.monitor.status.refused.redis_memory).toBe(2)
  })
})

it('a Redis that is away is not taken for overload', async () => {
  api.queue.holding = true
  const pending = api.post(entry)
  await expect.poll(() => api.queue.adds).toHaveLength(1)
  api.queue.adds[0]?.fail(new QueueUnavailableError('down'))
  expect(problemCode(await pending)).toBe('queue_unavailable')
  expect(api.signals.monitor.status.overloaded).toBe(false)
})
