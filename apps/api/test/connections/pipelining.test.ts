import { entryText, HttpConnection, postHead, postText } from '@sluice/harness'
import { readdir } from 'node:fs/promises'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { connectionLimits } from '../../src/connections/connection-limits.ts'
import { buildTestApi, type TestApi } from '../support/test-api.ts'

const { waitingRequestsPerConnectionMax } = connectionLimits
/** For a loaded machine. */
const PATIENCE = { timeout: 10_000 }
const health = 'GET /livez HTTP/1.1\r\n\r\n'
/** The answer is larger than the buffers of a connection if it is requested often enough. */
const page = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\n\r\n'
const PAGES = 20

let api: TestApi
const connections: HttpConnection[] = []

beforeEach(() => {
  api = buildTestApi()
})

afterEach(async () => {
  api.queue.holding = false
  for (const { confirm } of api.queue.adds) confirm()
  for (const connection of connections.splice(0)) connection.destroy()
  await api.close()
})

async function open(): Promise<HttpConnection> {
  if (!api.app.server.listening) await api.app.listen({ host: '127.0.0.1', port: 0 })
  const connection = await HttpConnection.open((api.app.server.address() as AddressInfo).port)
  connections.push(connection)
  return connection
}

/** Opens a connection on which as many requests wait as on all connections together. Its first request is being handled. */
async function fillProcess(): Promise<HttpConnection> {
  await api.close()
  api = buildTestApi({ connectionLimits: { ...connectionLimits, waitingRequestsMax: 3 } })
  api.queue.holding = true
  const waiting = await open()
  waiting.write(postText(api.key, entryText).repeat(4))
  return waiting
}

const statuses = (connection: HttpConnection): number[] => connection.responses.map(({ status }) => status)
const openFiles = async (): Promise<number> => (await readdir('/proc/self/fd')).length

it('one large page is written in each turn of the event loop', async () => {
  const sockets: Socket[] = []
  api.app.server.on('connection', (socket: Socket) => sockets.push(socket))
  const { payload } = await api.app.inject('/docs/swagger-ui-bundle.js')
  const pages = 10
  const clients = await Promise.all(Array.from({ length: pages }, open))
  // A server accepts one connection in each turn.
  await expect.poll(() => sockets, PATIENCE).toHaveLength(pages)
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
  it('are handled one at a time, and answered in order', async () => {
    api.queue.holding = true
    const connection = await open()
    connection.write(['a', 'b', 'c'].map((message) => postText(api.key, entryOf(message))).join(''))
    for (const [index, message] of ['a', 'b', 'c'].entries()) {
      await expect.poll(() => api.queue.rows.map((row) => row['message']), PATIENCE).toContain(message)
      await sleep(30)
      expect(api.queue.adds).toHaveLength(index + 1)
      api.queue.adds[index]?.confirm()
    }
    await expect.poll(() => statuses(connection), PATIENCE).toEqual([202, 202, 202])
  })

  it('with large bodies are all accepted', async () => {
    const connection = await open()
    const text = postText(api.key, entryOf('a'.repeat(50_000)))
    for (let sent = 0; sent < waitingRequestsPerConnectionMax * 2; sent += 1) connection.write(text)
    const accepted = Array.from({ length: waitingRequestsPerConnectionMax * 2 }, () => 202)
    await expect.poll(() => statuses(connection), PATIENCE).toEqual(accepted)
  })

  it('behind one that closes the connection are not handled', async () => {
    const connection = await open()
    connection.write(postText(api.key, entryText, ['Connection: close']) + postText(api.key, entryText))
    await expect.poll(() => connection.isEnded, PATIENCE).toBe(true)
    expect(statuses(connection)[0]).toBe(202)
    expect(api.queue.rows).toHaveLength(1)
  })

  it('may follow one whose body arrives slowly', async () => {
    const connection = await open()
    connection.write(health + health + postHead(api.key, [`Content-Length: ${entryText.length}`]))
    await expect.poll(() => statuses(connection), PATIENCE).toEqual([200, 200])
    connection.write(entryText + health)
    await expect.poll(() => statuses(connection), PATIENCE).toEqual([200, 200, 202, 200])
  })

  it('may be followed by others when they are answered', async () => {
    const connection = await open()
    for (let answered = 0; answered < 9; answered += 3) {
      connection.write(health.repeat(3))
      await expect.poll(() => statuses(connection), PATIENCE).toHaveLength(answered + 3)
    }
    for (const lines of [['Content-Length: 30'], []]) {
      connection.write(health + postHead(api.key, lines) + (lines.length === 0 ? '' : entryText))
    }
    await expect.poll(() => statuses(connection).slice(9), PATIENCE).toEqual([200, 202, 200, 400])
  })

  it('above the limit of a connection are rejected together, after the answers to the others', async () => {
    const connection = await open()
    connection.write(health.repeat(1_000))
    await expect.poll(() => connection.isEnded, PATIENCE).toBe(true)
    const answered = 1 + waitingRequestsPerConnectionMax
    expect(statuses(connection)).toEqual([...Array.from({ length: answered }, () => 200), 503])
    const rejection = connection.responses.at(-1)
    expect(rejection?.headers).toMatchObject({ connection: 'close', 'retry-after': '1' })
    expect(JSON.parse(rejection?.body ?? '')).toMatchObject({ code: 'overloaded' })
  })

  it('above the limit of the process are rejected, and single requests are not', async () => {
    await fillProcess()
    await expect.poll(() => api.queue.adds, PATIENCE).toHaveLength(1)
    const pipelined = await open()
    pipelined.write(health + health)
    await expect.poll(() => statuses(pipelined), PATIENCE).toEqual([200, 503])
    const single = await open()
    single.write(health)
    await expect.poll(() => statuses(single), PATIENCE).toEqual([200])
  })

  it('no longer count when their connection is closed', async () => {
    const waiting = await fillProcess()
    await expect.poll(() => api.queue.adds, PATIENCE).toHaveLength(1)
    waiting.destroy()
    // The server notices when it writes an answer.
    api.queue.holding = false
    api.queue.adds[0]?.confirm()
    await expect
      .poll(async () => {
        const next = await open()
        next.write(health.repeat(4))
        await expect.poll(() => next.responses.length).toBeGreaterThanOrEqual(3)
        return statuses(next)
      }, PATIENCE)
      .toEqual([200, 200, 200, 200])
  })
})

describe('a client that does not read', () => {
  it('has the next request handled when the answer before is taken', async () => {
    let checks = 0
    Object.defineProperty(api, 'readiness', {
      get: () => {
        checks += 1
        return { ready: true, reasons: [] }
      },
    })
    await api.app.listen({ host: '127.0.0.1', port: 0 })
    const socket = connect((api.app.server.address() as AddressInfo).port, '127.0.0.1')
    socket.write(`${page.repeat(PAGES)}GET /readyz HTTP/1.1\r\n\r\n`)
    await sleep(500)
    expect(checks).toBe(0)
    socket.resume()
    await expect.poll(() => checks, PATIENCE).toBe(1)
    socket.destroy()
  })

  it('costs one descriptor, whatever it requests', async () => {
    const connection = await open()
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
