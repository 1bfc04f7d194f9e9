import { entryText, type HttpConnection, postText } from '@sluice/harness'
import { readdir } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { connectionLimits } from '../../src/connections/connection-limits.ts'
import { codeOf, expectResponses, freshTestApi, rebuild } from '../support/shared-api.ts'

const { waitingRequestsPerConnectionMax } = connectionLimits
const health = 'GET /livez HTTP/1.1\r\n\r\n'
/** The response is larger than the buffers of a connection if it is requested often enough. */
const page = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\n\r\n'
const PAGES = 20

const api = freshTestApi()

/** Opens a connection on which as many requests wait as on all connections together. Its first request is being handled. */
async function fillProcess(): Promise<HttpConnection> {
  await rebuild(api, { connectionLimits: { ...connectionLimits, waitingRequestsMax: 3 } })
  api.queue.holding = true
  const waiting = await api.connect()
  waiting.write(postText(api.key, entryText).repeat(4))
  await expect.poll(() => api.queue.adds).toHaveLength(1)
  return waiting
}

const openFiles = async (): Promise<number> => (await readdir('/proc/self/fd')).length

it('one large page is written in each turn of the event loop', async () => {
  const sockets: Socket[] = []
  api.app.server.on('connection', (socket: Socket) => sockets.push(socket))
  const { payload } = await api.app.inject('/docs/swagger-ui-bundle.js')
  const pages = 10
  const clients = await Promise.all(Array.from({ length: pages }, () => api.connect()))
  // A server accepts one connection in each turn.
  await expect.poll(() => sockets).toHaveLength(pages)
  for (const client of clients) client.write(page)
  let [written, mostInOneTurn] = [0, 0]
  while (written < pages * payload.length) {
    await setImmediate()
    const now = sockets.reduce((sum, { bytesWritten }) => sum + bytesWritten, 0)
    mostInOneTurn = Math.max(mostInOneTurn, now - written)
    written = now
  }
  expect(mostInOneTurn).toBeLessThan(1.5 * payload.length)
})

describe('pipelined requests', () => {
  it('are handled one at a time, and get their responses in order', async () => {
    api.queue.holding = true
    const connection = await api.connect()
    connection.write(['a', 'b', 'c'].map((message) => postText(api.key, entryOf(message))).join(''))
    for (const [index, message] of ['a', 'b', 'c'].entries()) {
      await expect.poll(() => api.queue.rows.map((row) => row['message'])).toContain(message)
      await sleep(30)
      expect(api.queue.adds).toHaveLength(index + 1)
      api.queue.adds[index]?.confirm()
    }
    await expectResponses(connection, 202, 202, 202)
  })

  it('above the limit of a connection are rejected together, after the responses to the others', async () => {
    const connection = await api.connect()
    connection.write(health.repeat(1_000))
    await expect.poll(() => connection.isEnded).toBe(true)
    const answered = Array.from({ length: 1 + waitingRequestsPerConnectionMax }, () => 200)
    const rejection = (await expectResponses(connection, ...answered, 503)).at(-1)
    expect(rejection?.headers).toMatchObject({ connection: 'close', 'retry-after': '1' })
    expect(rejection && codeOf(rejection)).toBe('overloaded')
  })

  it('with large bodies are all accepted: nothing more is read while some wait', async () => {
    api.queue.holding = true
    const connection = await api.connect()
    const count = 2 * waitingRequestsPerConnectionMax
    connection.write(postText(api.key, entryText.padEnd(20_000)).repeat(count))
    await expect.poll(() => api.queue.adds).toHaveLength(1)
    await sleep(300)
    api.queue.holding = false
    api.queue.adds[0]?.confirm()
    await expectResponses(connection, ...Array.from({ length: count }, () => 202))
  })

  it('above the limit of the process are rejected, and single requests are not', async () => {
    await fillProcess()
    const pipelined = await api.connect()
    pipelined.write(health + health)
    await expectResponses(pipelined, 200, 503)
    const single = await api.connect()
    single.write(health)
    await expectResponses(single, 200)
  })

  it('no longer count when their connection is closed', async () => {
    const waiting = await fillProcess()
    waiting.destroy()
    // The server notices when it writes a response.
    api.queue.holding = false
    api.queue.adds[0]?.confirm()
    await expect
      .poll(async () => {
        const next = await api.connect()
        next.write(health.repeat(4))
        await expect.poll(() => next.responses.length).toBeGreaterThanOrEqual(3)
        return next.responses.map(({ status }) => status)
      })
      .toEqual([200, 200, 200, 200])
  })
})

describe('a client that does not read', () => {
  it('has the next request handled when the response before is taken', async () => {
    let handled = 0
    api.app.addHook('onRequest', async ({ url }) => {
      if (url === '/readyz') handled += 1
    })
    const socket = connect(await api.listen(), '127.0.0.1')
    socket.write(`${page.repeat(PAGES)}GET /readyz HTTP/1.1\r\n\r\n`)
    await sleep(500)
    expect(handled).toBe(0)
    socket.resume()
    await expect.poll(() => handled).toBe(1)
    socket.destroy()
  })

  it('costs one descriptor, whatever it requests', async () => {
    const connection = await api.connect()
    const before = await openFiles()
    connection.pause()
    for (let sent = 0; sent < 100; sent += 1) connection.write(page.repeat(PAGES))
    for (const endMs = performance.now() + 1_000; performance.now() < endMs; await sleep(50))
      expect(await openFiles()).toBeLessThan(before + 10)
  })
})

function entryOf(message: string): string {
  return JSON.stringify({ level: 'info', message })
}
