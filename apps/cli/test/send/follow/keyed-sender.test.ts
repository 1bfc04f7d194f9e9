import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { KeyedSender } from '../../../src/send/follow/keyed-sender.ts'
import { bodyOf } from './storing-api.ts'

type Answer = (response: ServerResponse) => void
const accept: Answer = (response) => response.writeHead(202).end('{"accepted":2,"rejected":0}')
const problem =
  (status: number, headers = {}): Answer =>
  (response) =>
    response.writeHead(status, headers).end(JSON.stringify({ title: 'Problem.' }))

const received: { request: IncomingMessage; body: string }[] = []
let answers: Answer[] = []
const server = createServer((request, response) => {
  const pieces: Buffer[] = []
  request.on('data', (piece: Buffer) => pieces.push(piece))
  request.on('end', () => {
    received.push({ request, body: bodyOf(request, pieces) })
    const answer = answers.shift() ?? accept
    answer(response)
  })
})
let stop = new AbortController()
const notes: string[] = []
beforeEach(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  stop = new AbortController()
  notes.length = 0
  received.length = 0
})
afterEach(async () => {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
})

function sender(
  port = (server.address() as AddressInfo).port,
  options: { idempotencyWindowMs?: number } = {},
): KeyedSender {
  return new KeyedSender({
    api: { url: `http://127.0.0.1:${port}/v1/logs`, key: 'slk_test' },
    signal: stop.signal,
    random: () => 0.99,
    note: (text) => notes.push(text),
    ...options,
  })
}

test('posts entries with the key, and retries with the same one until the API answers', async () => {
  answers = [
    problem(503),
    (response) => response.destroy(),
    problem(500),
    problem(429, { 'retry-after': '1' }),
  ]
  const startedAtMs = Date.now()
  expect(await sender().send(['{"a":1}', '{"b":2}'], 'key')).toMatchObject({ accepted: 2, rejections: [] })
  expect(Date.now() - startedAtMs).toBeGreaterThanOrEqual(1_000)
  expect(received).toHaveLength(5)
  for (const { request, body } of received) {
    expect(request.headers).toMatchObject({ 'idempotency-key': 'key', authorization: 'Bearer slk_test' })
    expect(body).toBe('{"logs":[{"a":1},{"b":2}]}')
  }
  expect(notes).toEqual(['Waiting until the API is available: Problem (503).', 'The API is available again.'])
})

test('makes the same request again if the API may have stored it and forgotten its key', async () => {
  answers = [(response) => response.destroy()]
  const { port } = server.address() as AddressInfo
  expect(await sender(port, { idempotencyWindowMs: 1_000 }).send(['{}', '{}'], 'key')).toMatchObject({
    accepted: 2,
  })
  expect(received.map(({ request }) => request.headers['idempotency-key'])).toEqual(['key', 'key'])
})

test('throws when the API rejects the request', async () => {
  answers = [problem(401)]
  await expect(sender().send(['{}'], 'key')).rejects.toThrow('the API key is missing, malformed')
})

test('waits for an API that does not run yet, and ends when it is interrupted', async () => {
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  const waiting = sender(port).send(['{}'], 'key')
  await sleep(400)
  stop.abort()
  expect(await waiting).toBeUndefined()
  expect(notes).toEqual(['Waiting until the API is available: the API refused the connection.'])
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})

test('sends nothing after an interrupt', async () => {
  stop.abort()
  expect(await sender().send(['{}'], 'key')).toBeUndefined()
  expect(received).toEqual([])
})
