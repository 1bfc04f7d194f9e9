import { connect } from 'node:net'
import { text as textOf } from 'node:stream/consumers'
import { beforeEach, describe, expect, it } from 'vitest'
import { type TestQuery, useQueryTests } from './support/test-query.ts'

const { store, open } = await useQueryTests()
let api: TestQuery
let projectId: string
let key: string

beforeEach(async () => {
  api = await open()
  ;({ projectId, key } = api.addProject())
})

const ask = (path: string) => api.ask(`/v1/query/${path}`, key)

const connections = (): Promise<number> =>
  new Promise((resolve) => api.app.server.getConnections((_error, count) => resolve(count)))

/** More than the buffers of its connection take. */
const large = (receivedMs: number): Promise<unknown> =>
  store(Array.from({ length: 600 }, () => ({ projectId, receivedMs, message: 'x'.repeat(40_000) })))

it.each([
  [
    'GET /v1/query/logs?query=\u00fcber HTTP/1.1',
    400,
    'The URL has a character that must be percent-encoded.',
  ],
  ['no HTTP', 400, 'The request is not valid HTTP.'],
  [`GET /v1/query/logs?query=${'a'.repeat(70_000)} HTTP/1.1`, 431, ''],
])('rejects what is not HTTP with a problem document', async (line, status, detail) => {
  const { hostname, port } = new URL(api.url)
  const socket = connect(Number(port), hostname)
  socket.write(`${line}\r\nHost: a\r\n\r\n`)
  const answer = await textOf(socket)
  const [head = '', body = ''] = answer.split('\r\n\r\n')
  expect(head).toContain('content-type: application/problem+json')
  expect(JSON.parse(body)).toMatchObject({ status, detail: expect.stringContaining(detail) })
})

describe('a client that goes', () => {
  it.each(['logs', 'tail'])('while its key is looked up has no place for %s', async (path) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    api.registry.beforeAnswer = () => promise
    const client = ask(path)
    await expect.poll(() => api.registry.lookups).toBe(1)
    client.leave()
    await expect.poll(connections).toBe(0)
    resolve()
    expect(await api.status(key, 'values', { field: 'level' })).toBe(200)
    await expect.poll(() => [api.slots.running, api.tails.viewers]).toEqual([0, 0])
  })

  it('while a tail asks what is complete is no viewer', async () => {
    const { promise, resolve } = Promise.withResolvers<number>()
    let asked = 0
    api.completeUntil = () => {
      asked += 1
      return promise
    }
    const client = ask('tail')
    await expect.poll(() => asked).toBe(1)
    client.leave()
    await expect.poll(connections).toBe(0)
    resolve(Date.now())
    expect(await api.status(key, 'logs')).toBe(200)
    expect(api.tails.viewers).toBe(0)
  })
})

describe('a client that reads nothing', () => {
  it('gives its place back', async () => {
    await large(Date.now())
    expect(api.app.server.timeout).toBeGreaterThan(60_000)
    api.app.server.timeout = 300
    ask('logs?limit=1000')
    await expect.poll(() => api.slots.running).toBe(1)
    await expect.poll(() => api.slots.running).toBe(0)
  })

  it('keeps no viewer waiting that is behind, and gets every entry once when it reads', async () => {
    const receivedMs = Date.now() - 600_000
    api.completeMs = receivedMs + 500_000
    await large(receivedMs)
    const from = new Date(receivedMs - 1).toISOString()
    for (let n = 1; n < 5; n++) ask(`tail?from=${from}`)
    const client = ask(`tail?from=${from}`)
    await expect.poll(() => api.tails.viewers).toBe(5)
    // All of them wait for their clients.
    await expect.poll(() => api.queries).toBeGreaterThan(0)
    client.read()
    await expect.poll(() => /"complete_until":"/.test(client.text)).toBe(true)
    const ids = client.text.match(/"id":"[^"]+"/g) ?? []
    expect([ids.length, new Set(ids).size]).toEqual([600, 600])
    expect(client.text).not.toContain('skipped')
  })
})
