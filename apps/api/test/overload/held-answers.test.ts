import { limits } from '@sluice/schema'
import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { HttpConnection } from '@sluice/harness'
import { expect, it, vi } from 'vitest'
import { BODY_LIMITS_MIN } from '../../src/overload/body-budget.ts'
import { freshTestApi, openConnections } from '../support/shared-api.ts'

/** A small request with the largest responses. The operating system takes up to 4 MB of a response. */
const body = gzipSync('{"index":{}}\nx\n'.repeat(limits.recordsPerRequestMax))
const path = `/elasticsearch/${'x'.repeat(100)}/_bulk`

const api = freshTestApi({ bodyLimits: { bytesMax: BODY_LIMITS_MIN, projectBytesMax: BODY_LIMITS_MIN } })

const head = (): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${api.key}\r\nContent-Encoding: gzip\r\n` +
  `Content-Length: ${body.length}\r\n\r\n`
const answers = (status: string): number =>
  api.counts.answers.find(([[, , counted]]) => counted === status)?.[1] ?? 0

/** Sends a request, and reads nothing. */
async function sendUnread(): Promise<HttpConnection> {
  const connection = await api.connect()
  connection.pause()
  connection.write(head())
  connection.write(body)
  return connection
}

it('a small response is not held any more when it is sent', () => {
  const response = new EventEmitter() as ServerResponse
  for (const [bytes = 0, left] of [
    [65_535, 0],
    [65_536, 65_536],
  ]) {
    const held = api.bodies.open('p')
    held.hold(bytes)
    expect(api.bodies.status.bytes).toBe(bytes)
    held.releaseAfter(response, bytes)
    expect(api.bodies.status.bytes).toBe(left)
  }
  response.emit('close')
  expect(api.bodies.status.bytes).toBe(0)
})

it('a connection is closed if its client takes more than a minute to read a response', () => {
  vi.useFakeTimers()
  try {
    const destroy = vi.fn<() => void>()
    const response = Object.assign(new EventEmitter(), { destroy }) as unknown as ServerResponse
    const held = api.bodies.open('p')
    held.hold(65_536)
    held.releaseAfter(response, 65_536)
    vi.advanceTimersByTime(59_999)
    expect(destroy).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(destroy).toHaveBeenCalledOnce()
    response.emit('close')
    held.hold(65_536)
    held.releaseAfter(response, 65_536)
    response.emit('close')
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})

it('a response that is not read is held in the budget of bodies until the connection is closed', async () => {
  const accepted = Promise.withResolvers<Socket>()
  api.app.server.once('connection', accepted.resolve)
  const connection = await sendUnread()
  await expect.poll(() => answers('200')).toBe(1)
  await expect.poll(() => api.bodies.status.bytes).toBeGreaterThan(3_000_000)
  // Its parts are passed to the connection one by one.
  await expect.poll(async () => (await accepted.promise).writableLength).toBeGreaterThan(0)
  expect((await accepted.promise).writableLength).toBeLessThan(1_000_000)
  connection.destroy()
  await expect.poll(() => api.bodies.status.bytes).toBe(0)
})

it('a request is rejected, and nothing is stored, if there is no room for its response', async () => {
  const count = Math.ceil(BODY_LIMITS_MIN / 4_000_000) + 2
  const clients = await Promise.all(Array.from({ length: count }, sendUnread))
  await expect.poll(() => answers('200') + answers('429')).toBe(count)
  expect(answers('429')).toBeGreaterThan(0)
  expect(api.bodies.status.bytes).toBeLessThanOrEqual(BODY_LIMITS_MIN)
  for (const client of clients) client.destroy()
  await expect.poll(() => api.bodies.status.bytes).toBe(0)
})

it('the response to a client that has left before it is made is not held', async () => {
  api.queue.holding = true
  const valid = gzipSync('{"index":{}}\n{"message":"m"}\n'.repeat(2_000))
  const connection = await api.connect()
  connection.write(head().replace(/Length: \d+/, `Length: ${valid.length}`))
  connection.write(valid)
  await expect.poll(() => api.queue.adds.length).toBe(1)
  expect(api.bodies.status.bytes).toBeGreaterThan(65_536)
  connection.destroy()
  await expect.poll(() => openConnections(api)).toBe(0)
  api.queue.adds[0]?.confirm()
  await expect.poll(() => api.bodies.status.bytes).toBe(0)
})

it('a body is not kept while its response is sent, and a small response is sent at once', async () => {
  const sent: unknown[] = []
  api.app.addHook('onSend', async (request, _reply, payload) => {
    sent.push([request.body, payload])
  })
  const answer = await api.post('{"index":{}}\n{}\n', { url: path })
  expect(answer.statusCode).toBe(200)
  expect(sent).toEqual([[undefined, answer.rawPayload]])
})

it('the largest request fits into the smallest budget together with its response', async () => {
  const id = 'x'.repeat(130)
  const documents = Array.from(
    { length: limits.recordsPerRequestMax },
    (_, i) => `{"index":{"_id":"${id}${i}"}}\n{"message":"${'\\n'.repeat(60)}"}\n`,
  ).join('')
  expect(documents.length).toBeGreaterThan(0.9 * limits.bodyBytesMax)
  expect(documents.length).toBeLessThan(limits.bodyBytesMax)
  const answer = await api.post(documents, { url: path })
  expect(answer.statusCode).toBe(200)
  expect(answer.rawPayload.length).toBeGreaterThan(4_500_000)
  await expect.poll(() => api.bodies.status.bytes).toBe(0)
})
