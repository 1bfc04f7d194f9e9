import { entryText, type HttpConnection, postHead, postText } from '@sluice/harness'
import { PATIENCE_MS } from '@sluice/harness/waiting'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it, onTestFinished } from 'vitest'
import { connectionLimits, type ConnectionLimits } from '../../src/connections/connection-limits.ts'
import { codeOf, expectResponses, freshTestApi, rebuild } from '../support/shared-api.ts'

/** Each test shortens the timeout that is to close its connection. The others are longer than a test. */
const never: ConnectionLimits = {
  ...connectionLimits,
  headersMs: 50_000,
  requestMs: 60_000,
  idleMs: 60_000,
  staleMs: 110_000,
  staleIntervalMs: 50,
  lingerMs: 200,
}

const BODY_BYTES = 256 * 1024

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** The memory of all that is still reachable, buffers included. */
function reachableBytes(): number {
  for (let i = 0; i < 2; i += 1) collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const api = freshTestApi({ connectionLimits: never })
const limit = (limits: Partial<ConnectionLimits>): Promise<void> =>
  rebuild(api, { connectionLimits: { ...never, ...limits } })

/** Writes `text` every 20 ms until the connection is closed. */
async function dribble(connection: HttpConnection, text: string): Promise<void> {
  const endMs = performance.now() + PATIENCE_MS
  while (!connection.isClosed && performance.now() < endMs) {
    connection.write(text)
    await sleep(20)
  }
}

describe('the connection of a slow client is closed', () => {
  const large = ['Content-Length: 1000000']
  const small = ['Content-Length: 10000']

  it.each<[what: string, start: () => string, more: string, code: string]>([
    ['headers', () => 'POST /v1/logs HTTP/1.1\r\n', 'X-Note: a\r\n', 'request_timeout'],
    ['a body', () => postHead(api.key, large), ' ', 'request_timeout'],
    ['the rest of a small rejected body', () => postHead('unknown', small), ' ', 'unauthorized'],
    ['garbage', () => 'garbage\r\n\r\n', 'x', 'bad_request'],
  ])('while it sends %s, with one response', async (_what, start, more, code) => {
    await limit({ headersMs: 300, requestMs: 600 })
    const connection = await api.connect()
    connection.write(start())
    await dribble(connection, more)
    expect(connection.isClosed).toBe(true)
    expect(connection.responses.map(codeOf)).toEqual([code])
    expect(api.queue.adds).toEqual([])
  })

  it('at its own deadline, and not in the same turn of the event loop as many others', async () => {
    await limit({ headersMs: 300 })
    let turn = 0
    const turns: number[] = []
    api.app.server.on('clientError', () => turns.push(turn))
    const count = 20
    const opening = (async () => {
      for (let i = 0; i < count; i += 1) {
        const connection = await api.connect()
        connection.write('POST /v1/logs HTTP/1.1\r\n')
        await sleep(20)
      }
    })()
    const patience = AbortSignal.timeout(PATIENCE_MS)
    for (; turns.length < count && !patience.aborted; turn += 1) await setImmediate()
    await opening
    expect(turns).toHaveLength(count)
    expect(new Set(turns).size).toBeGreaterThan(2)
  })

  it('if it is idle between requests', async () => {
    await limit({ idleMs: 100 })
    const connection = await api.connect()
    connection.write(postText(api.key, entryText))
    await expect.poll(() => connection.isEnded).toBe(true)
    await expectResponses(connection, 202)
  })

  it('if it sends only line breaks between requests', async () => {
    await limit({ idleMs: 200, staleMs: 400 })
    const connection = await api.connect()
    connection.write(postText(api.key, entryText))
    await expectResponses(connection, 202)
    await dribble(connection, '\r\n')
    expect(connection.isClosed).toBe(true)
    await expectResponses(connection, 202)
  })

  it.each([1, 50])(
    'if it sends all the time, %i requests at once, and does not read responses',
    async (count) => {
      await limit({ staleMs: 500 })
      const port = await api.listen()
      const socket = connect({ port, host: '127.0.0.1' })
      onTestFinished(() => void socket.destroy())
      socket.on('error', () => undefined)
      await once(socket, 'connect')
      socket.pause()
      // Responses to invalid batches are long, so they fill the buffers of the connection soon.
      const bad = postText(api.key, `[${'0,'.repeat(99)}0]`).repeat(count)
      const write = (): void => {
        while (!socket.destroyed && socket.write(bad));
      }
      socket.on('drain', write)
      write()
      await expect.poll(() => socket.closed, { timeout: 15_000 }).toBe(true)
    },
    20_000,
  )
})

describe('a request that is rejected before its body is read', () => {
  const key = 'unknown'

  it.each([
    ['has a large Content-Length', `Content-Length: ${never.unreadBytesMax + 1}`],
    ['has no Content-Length', 'Transfer-Encoding: chunked'],
    ['waits for 100 Continue', 'Expect: 100-continue\r\nContent-Length: 100'],
  ])('closes its connection when it %s', async (_what, line) => {
    const connection = await api.connect()
    connection.write(postHead(key, [line]))
    const [response] = await expectResponses(connection, 401)
    expect(response?.headers['connection']).toBe('close')
    expect(connection.received).not.toContain('100 Continue')
    await expect.poll(() => connection.isEnded).toBe(true)
  })

  it('keeps its connection open for the next request when its body is small', async () => {
    const connection = await api.connect()
    connection.write(postHead(key, [`Content-Length: ${never.unreadBytesMax}`]))
    await expectResponses(connection, 401)
    connection.write('a'.repeat(never.unreadBytesMax) + postText(api.key, entryText))
    await expectResponses(connection, 401, 202)
    connection.write('garbage\r\n\r\n')
    await expectResponses(connection, 401, 202, 400)
  })

  it.each([
    ['an unknown key', `POST /v1/logs HTTP/1.1\r\nAuthorization: Bearer ${key}`, 401],
    ['a path that cannot be decoded', 'POST /%zz HTTP/1.1', 400],
    ['a health check', 'GET /livez HTTP/1.1', 200],
  ])(
    'closes also after %s, and a client that continues to send can read the response',
    async (_what, start, status) => {
      const connection = await api.connect()
      connection.write(`${start}\r\nHost: x\r\nContent-Length: 10000000000\r\n\r\n`)
      const part = Buffer.alloc(256 * 1024, 'a')
      const endMs = performance.now() + PATIENCE_MS
      while (connection.error === undefined && performance.now() < endMs) {
        connection.write(part)
        await connection.flushed()
      }
      await expect.poll(() => connection.isClosed).toBe(true)
      await expectResponses(connection, status)
    },
  )

  it.each([
    ['body', postHead(key, ['Content-Length: 10000000000'])],
    ['headers', `POST /v1/logs HTTP/1.1\r\nX-Note: ${'a'.repeat(20_000)}`],
    ['garbage', 'garbage\r\n\r\n'],
  ])('can be read by a client that first continues to send %s', async (_what, text) => {
    await limit({ lingerMs: 60_000 })
    const accepted = once(api.app.server, 'connection')
    const connection = await api.connect()
    connection.pause()
    connection.write(text)
    for (let i = 0; i < 10; i += 1) {
      await sleep(20)
      connection.write('a'.repeat(1_000))
    }
    const [socket] = (await accepted) as [Socket]
    expect(socket.destroyed).toBe(false)
    connection.resume()
    await expect.poll(() => connection.responses).toHaveLength(1)
    expect(connection.error).toBeUndefined()
  })

  it('takes one read of each turn of the event loop while the rest of its body is discarded', async () => {
    await limit({ lingerMs: 2_000 })
    // The first reads come before the response.
    const readsBefore = 3
    let [turn, mostInOneTurn] = [0, 0]
    api.app.server.on('connection', (socket: Socket) => {
      let [reads, turnOfReads, inTurn] = [0, 0, 0]
      socket.on('data', () => {
        reads += 1
        inTurn = turn === turnOfReads ? inTurn + 1 : 1
        turnOfReads = turn
        if (reads > readsBefore) mostInOneTurn = Math.max(mostInOneTurn, inTurn)
      })
    })
    const connections = await Promise.all(Array.from({ length: 10 }, () => api.connect()))
    for (const connection of connections) {
      connection.write(postHead(key, ['Content-Length: 3000000']))
      connection.write(Buffer.alloc(3_000_000, 'a'))
    }
    const flushed = new AbortController()
    void Promise.all(connections.map((connection) => connection.flushed())).then(() => flushed.abort())
    while (!flushed.signal.aborted || connections.some(({ responses }) => responses.length === 0)) {
      await setImmediate()
      turn += 1
    }
    for (const connection of connections) await expectResponses(connection, 401)
    expect(mostInOneTurn).toBe(1)
  })

  it('buffers only a small part of its body while the key is looked up', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    api.registry.beforeAnswer = () => promise
    const { key: unknownKey } = api.registry.addKey()
    api.registry.keysByHash.clear()
    const connection = await api.connect()
    connection.write(postHead(unknownKey, ['Content-Length: 50000000']))
    await expect.poll(() => api.registry.lookups).toBe(1)
    connection.write(Buffer.alloc(50_000_000, 'a'))
    const flushed = connection.flushed()
    await sleep(300)
    expect(connection.bytesTaken).toBeLessThan(20_000_000)
    resolve()
    await expectResponses(connection, 401)
    await flushed
  })
})

it('garbage after complete requests gets its response after them and does not affect theirs', async () => {
  api.queue.holding = true
  const connection = await api.connect()
  connection.write(`${postText(api.key, entryText).repeat(3)}garbage\r\n\r\n`)
  await expect.poll(() => api.queue.adds.length).toBeGreaterThan(0)
  await sleep(50)
  expect(connection.received).toBe('')
  api.queue.holding = false
  for (const { confirm } of api.queue.adds) confirm()
  await expectResponses(connection, 202, 202, 202, 400)
  expect(api.queue.rows).toHaveLength(3)
  await expect.poll(() => connection.isEnded).toBe(true)
})

it('garbage after a body that is rejected gets its response', async () => {
  const connection = await api.connect()
  // The key of the second request is known, so its body is rejected before the parser reports its end.
  connection.write(postText(api.key, entryText))
  await expectResponses(connection, 202)
  connection.write(postText(api.key, '{'))
  await expectResponses(connection, 202, 400)
  connection.write('garbage\r\n\r\n')
  await expectResponses(connection, 202, 400, 400)
})

it('an idle connection keeps nothing of its last request', async () => {
  const connections: HttpConnection[] = []
  const open = async (count: number): Promise<number> => {
    for (let i = 0; i < count; i += 1) {
      const connection = await api.connect()
      connections.push(connection)
      connection.write(postText(api.key, entryText.padEnd(BODY_BYTES)))
    }
    for (const connection of connections) await expectResponses(connection, 202)
    api.queue.adds.length = 0
    return reachableBytes()
  }
  const before = await open(20)
  // Both ends of a connection take about 20 KB.
  expect((await open(100)) - before).toBeLessThan((100 * BODY_BYTES) / 4)
})

it('CONNECT is rejected, and the connection is closed', async () => {
  const connection = await api.connect()
  connection.write('CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n')
  const [response] = await expectResponses(connection, 405)
  expect(response?.headers['allow']).toBe('POST')
  expect(response && codeOf(response)).toBe('method_not_allowed')
  await expect.poll(() => connection.isEnded).toBe(true)
})
