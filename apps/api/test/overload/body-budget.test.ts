import { chunkText, entryText, type HttpConnection, postHead, postText } from '@sluice/harness'
import { beforeEach, describe, expect, it } from 'vitest'
import { gzipSync } from 'node:zlib'
import { problemCode } from '../support/problem.ts'
import { codeOf, expectResponses, freshTestApi } from '../support/shared-api.ts'

const MEBIBYTE = 1_048_576
const bodyLimits = { bytesMax: 2 * MEBIBYTE, projectBytesMax: MEBIBYTE }

const api = freshTestApi({ bodyLimits })
let otherKey: string

beforeEach(() => {
  otherKey = addProject('other')
})

function addProject(id: string): string {
  api.registry.addProject({ id })
  return api.registry.addKey({ projectId: id }).key
}

/** Sends the start of a request on its own connection. */
async function start(text: string): Promise<HttpConnection> {
  const connection = await api.connect()
  connection.write(text)
  return connection
}

const declared = (key: string, bytes: number): string => postHead(key, [`Content-Length: ${bytes}`])
const chunked = (key: string): string => postHead(key, ['Transfer-Encoding: chunked'])
const held = (bytes: number): Promise<void> => expect.poll(() => api.bodies.status.bytes).toBe(bytes)

describe('bodies in flight', () => {
  it('of one project are limited, by their declared lengths', async () => {
    await start(declared(api.key, MEBIBYTE - 10))
    await held(MEBIBYTE - 10)
    const rejected = await start(declared(api.key, 100_000))
    const [response] = await expectResponses(rejected, 503)
    expect(response?.headers).toMatchObject({ 'retry-after': '1', connection: 'close' })
    expect(response && codeOf(response)).toBe('overloaded')
    const other = await start(postText(otherKey, entryText))
    await expectResponses(other, 202)
    await held(MEBIBYTE - 10)
    expect(api.bodies.status).toMatchObject({ ...bodyLimits, rejected: 1 })
  })

  it('of all projects are limited', async () => {
    for (const key of [api.key, otherKey]) await start(declared(key, MEBIBYTE))
    await held(2 * MEBIBYTE)
    const rejected = await start(declared(addProject('third'), 10))
    await expectResponses(rejected, 503)
  })

  it('are limited by the bytes that arrived if they are in chunks', async () => {
    const connection = await start(chunked(api.key))
    connection.write(chunkText(' '.repeat(600_000)))
    await held(600_000)
    const rejected = await start(chunked(api.key) + chunkText(' '.repeat(600_000)))
    await expectResponses(rejected, 503)
    await held(600_000)
    connection.write(`${chunkText(entryText)}0\r\n\r\n`)
    await expectResponses(connection, 202)
    await held(0)
  })

  it('are not requested with 100 Continue if they do not fit', async () => {
    await start(declared(api.key, MEBIBYTE - 10))
    await held(MEBIBYTE - 10)
    const rejected = await start(postHead(api.key, ['Expect: 100-continue', 'Content-Length: 100000']))
    await expectResponses(rejected, 503)
    expect(rejected.received).not.toContain('100 Continue')
  })

  it('count with their decoded content', async () => {
    const gzip = { headers: { 'content-encoding': 'gzip' } }
    const body = gzipSync(entryText.padEnd(MEBIBYTE - 10_000))
    expect((await api.post(body, gzip)).statusCode).toBe(202)
    expect(problemCode(await api.post(gzipSync(entryText.padEnd(MEBIBYTE)), gzip))).toBe('overloaded')
    expect(api.queue.rows).toHaveLength(1)
    expect(api.bodies.status.bytes).toBe(0)
  })

  it('count until the response', async () => {
    api.queue.holding = true
    const pending = api.post(entryText)
    await expect.poll(() => api.queue.adds).toHaveLength(1)
    expect(api.bodies.status.bytes).toBe(entryText.length + (api.queue.adds[0]?.chunk.bytes ?? 0))
    api.queue.adds[0]?.confirm()
    await pending
    expect(api.bodies.status.bytes).toBe(0)
  })
})

describe('nothing is held any more', () => {
  it.each([
    ['with a declared length', () => declared(api.key, 1_000) + ' '.repeat(10), 1_000],
    ['in chunks', () => chunked(api.key) + chunkText(' '.repeat(10)), 10],
  ])('after a client disconnects within a body %s', async (_what, text, bytes) => {
    const connection = await start(text())
    await held(bytes)
    connection.destroy()
    await expect.poll(() => api.bodies.status.bytes).toBe(0)
  })

  it('after a client disconnects while its key is looked up', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    api.registry.beforeAnswer = () => promise
    const closed: string[] = []
    const connection = await api.connect()
    api.app.server.once('request', ({ socket }) => socket.once('close', () => closed.push('closed')))
    connection.write(declared(api.key, 1_000))
    await expect.poll(() => api.registry.lookups).toBe(1)
    connection.destroy()
    await expect.poll(() => closed).toHaveLength(1)
    resolve()
    const next = await start(postText(api.key, entryText))
    await expectResponses(next, 202)
    await held(0)
  })

  // No handler uses these bodies.
  it.each([
    ['OPTIONS', '/services/collector', 200],
    ['OPTIONS', '/services/collector/raw', 405],
    ['OPTIONS', '/v1/logs', 405],
    ['PUT', '/v1/logs', 405],
    ['GET', '/elasticsearch/', 200],
    ['POST', '/services/collector/health', 405],
    ['GET', '/livez', 200],
    ['POST', '/unknown', 404],
  ])('after %s %s with a body', async (method, url, status) => {
    const key = `Authorization: Bearer ${api.key}\r\nDD-API-KEY: ${api.key}`
    const head = `${method} ${url} HTTP/1.1\r\nHost: x\r\n${key}\r\n`
    const length = `${head}Content-Length: 1000\r\n`
    for (const text of [
      `${length}Content-Type: application/json\r\n\r\n${' '.repeat(1_000)}`,
      `${head}Transfer-Encoding: chunked\r\n\r\n${chunkText(' '.repeat(1_000))}0\r\n\r\n`,
      // The client waits for a response before it sends the body.
      `${length}Expect: 100-continue\r\n\r\n`,
    ]) {
      const connection = await start(text)
      await expectResponses(connection, status)
      expect(api.bodies.status).toMatchObject({ bytes: 0, rejected: 0 })
    }
  })
})
