import { chunkText, entryText, HttpConnection, postHead, postText } from '@sluice/harness'
import { once } from 'node:events'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { connectionLimits, type ConnectionLimits } from '../../src/connections/connection-limits.ts'
import { buildTestApi, type TestApi } from '../support/test-api.ts'

/** Short enough for tests, and in the same order as in production. */
const short: ConnectionLimits = {
  ...connectionLimits,
  headersMs: 300,
  requestMs: 600,
  idleMs: 400,
  staleMs: 700,
  staleIntervalMs: 50,
  lingerMs: 200,
}
/** Much longer than all of them, for a loaded machine. */
const PATIENCE = { timeout: 4_000 }
/** Longer than a test, so that no other timeout closes the connection. */
const never = { headersMs: 50_000, requestMs: 60_000, idleMs: 60_000, staleMs: 110_000 }

const closing: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

interface Setup {
  readonly api: TestApi
  readonly port: number
  readonly open: () => Promise<HttpConnection>
}

async function setup(limits: Partial<ConnectionLimits> = {}): Promise<Setup> {
  const api = buildTestApi({ connectionLimits: { ...short, ...limits } })
  closing.push(() => api.close())
  await api.app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = api.app.server.address() as AddressInfo
  const open = async (): Promise<HttpConnection> => {
    const connection = await HttpConnection.open(port)
    closing.push(() => connection.destroy())
    return connection
  }
  return { api, port, open }
}

/** For tests that change nothing in the API but what is stored, and in which no timeout closes a connection. */
let shared: Setup | undefined
afterAll(() => shared?.api.close())

async function withoutTimeouts(): Promise<Setup> {
  if (shared === undefined) {
    shared = await setup(never)
    // It stays open until the end of the file.
    closing.shift()
  }
  shared.api.queue.holding = false
  shared.api.queue.adds.length = 0
  return shared
}

const statuses = (connection: HttpConnection): number[] => connection.responses.map(({ status }) => status)
const codes = (connection: HttpConnection): unknown[] =>
  connection.responses.map(({ body }) => (JSON.parse(body) as { code?: unknown }).code)

/** Writes the text every 20 ms until the connection is closed. */
async function dribble(connection: HttpConnection, text: string): Promise<void> {
  const endMs = performance.now() + PATIENCE.timeout
  while (!connection.isClosed && performance.now() < endMs) {
    connection.write(text)
    await sleep(20)
  }
}

describe('the connection of a slow client is closed', () => {
  it('while it sends headers slowly, with the reason', async () => {
    const { open } = await setup({ requestMs: 50_000 })
    const connection = await open()
    connection.write('POST /v1/logs HTTP/1.1\r\n')
    await dribble(connection, 'X-Note: a\r\n')
    expect(connection.isClosed).toBe(true)
    expect(codes(connection)).toEqual(['request_timeout'])
  })

  it('at its own deadline, and not in the same turn of the event loop as many others', async () => {
    const { api, open } = await setup({ requestMs: 50_000 })
    let turn = 0
    const turns: number[] = []
    api.app.server.on('clientError', () => turns.push(turn))
    const count = 20
    const opening = (async () => {
      for (let i = 0; i < count; i += 1) {
        const connection = await open()
        connection.write('POST /v1/logs HTTP/1.1\r\n')
        await sleep(20)
      }
    })()
    const patience = AbortSignal.timeout(PATIENCE.timeout)
    for (; turns.length < count && !patience.aborted; turn += 1) await setImmediate()
    await opening
    expect(turns).toHaveLength(count)
    const mostInOneTurn = Math.max(
      ...Map.groupBy(turns, (at) => at)
        .values()
        .map(({ length }) => length),
    )
    expect(mostInOneTurn).toBeLessThan(count / 2)
  })

  it('while it sends a body slowly, with the reason, and nothing is enqueued', async () => {
    const { api, open } = await setup()
    const connection = await open()
    connection.write(postHead(api.key, ['Content-Length: 1000000']))
    await dribble(connection, ' ')
    expect(connection.isClosed).toBe(true)
    expect(codes(connection)).toEqual(['request_timeout'])
    expect(api.queue.adds).toEqual([])
  })

  it('while it sends the rest of a small rejected body slowly, without a second answer', async () => {
    const { open } = await setup()
    const connection = await open()
    connection.write(postHead('unknown', ['Content-Length: 10000']))
    await dribble(connection, ' ')
    expect(connection.isClosed).toBe(true)
    expect(statuses(connection)).toEqual([401])
  })

  it('if it sends nothing', async () => {
    const { open } = await setup({ requestMs: 50_000 })
    const connection = await open()
    await expect.poll(() => connection.received, PATIENCE).toContain('request_timeout')
  })

  it('if it is idle between requests', async () => {
    const { api, open } = await setup({ ...never, idleMs: 100 })
    const connection = await open()
    connection.write(postText(api.key, entryText))
    await expect.poll(() => connection.isEnded, PATIENCE).toBe(true)
    expect(statuses(connection)).toEqual([202])
  })

  it('if it sends only line breaks between requests', async () => {
    const { api, open } = await setup({ ...never, idleMs: 200, staleMs: 400 })
    const connection = await open()
    connection.write(postText(api.key, entryText))
    await expect.poll(() => statuses(connection), PATIENCE).toEqual([202])
    await dribble(connection, '\r\n')
    expect(connection.isClosed).toBe(true)
    expect(statuses(connection)).toEqual([202])
  })

  it.each([1, 8, 50])(
    'if it sends all the time, %i requests at once, and does not read answers',
    async (count) => {
      const { api, port } = await setup({ ...never, staleMs: 500 })
      const socket = connect({ port, host: '127.0.0.1' })
      closing.push(() => void socket.destroy())
      socket.on('error', () => undefined)
      await once(socket, 'connect')
      socket.pause()
      // Answers to invalid batches are long, so they fill the buffers of the connection soon.
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
    ['has a large Content-Length', `Content-Length: ${short.unreadBytesMax + 1}`],
    ['has no Content-Length', 'Transfer-Encoding: chunked'],
    ['waits for 100 Continue', 'Expect: 100-continue\r\nContent-Length: 100'],
  ])('closes its connection when it %s', async (_what, line) => {
    const { open } = await withoutTimeouts()
    const connection = await open()
    connection.write(postHead(key, [line]))
    await expect.poll(() => statuses(connection), PATIENCE).toEqual([401])
    expect(connection.responses[0]?.headers['connection']).toBe('close')
    await expect.poll(() => connection.isEnded, PATIENCE).toBe(true)
  })

  it.each([
    ['a small body', postText(key, entryText), 401],
    ['an empty body', postText(key, ''), 401],
    ['a GET', 'GET /v1/logs HTTP/1.1\r\nHost: x\r\n\r\n', 405],
    ['an unknown path', 'GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n', 404],
  ])('keeps its connection after %s', async (_what, text, status) => {
    const { api, open } = await withoutTimeouts()
    const connection = await open()
    connection.write(text)
    await expect.poll(() => statuses(connection), PATIENCE).toEqual([status])
    connection.write(postText(api.key, entryText))
    await expect.poll(() => statuses(connection), PATIENCE).toEqual([status, 202])
  })

  it.each([
    ['an unknown key', `POST /v1/logs HTTP/1.1\r\nAuthorization: Bearer ${key}`, 401],
    ['another method', 'PUT /v1/logs HTTP/1.1', 405],
    ['another path', 'POST /v1/events HTTP/1.1', 404],
    ['a path that cannot be decoded', 'POST /%zz HTTP/1.1', 400],
    ['a health check', 'GET /livez HTTP/1.1', 200],
  ])(
    'closes also after %s, and a client that continues to send can read the answer',
    async (_what, start, status) => {
      const { open } = await withoutTimeouts()
      const connection = await open()
      connection.write(`${start}\r\nHost: x\r\nContent-Length: 10000000000\r\n\r\n`)
      const part = Buffer.alloc(256 * 1024, 'a')
      const endMs = performance.now() + PATIENCE.timeout
      while (connection.error === undefined && performance.now() < endMs) {
        connection.write(part)
        await connection.flushed()
      }
      await expect.poll(() => connection.isClosed, PATIENCE).toBe(true)
      expect(statuses(connection)).toEqual([status])
    },
  )

  it.each([
    ['body', postHead(key, ['Content-Length: 10000000000'])],
    ['headers', `POST /v1/logs HTTP/1.1\r\nX-Note: ${'a'.repeat(20_000)}`],
    ['garbage', 'garbage\r\n\r\n'],
  ])('can be read by a client that first continues to send %s', async (_what, text) => {
    const { api, open } = await setup({ ...never, lingerMs: 60_000 })
    const accepted = once(api.app.server, 'connection')
    const connection = await open()
    connection.pause()
    connection.write(text)
    for (let i = 0; i < 10; i += 1) {
      await sleep(20)
      connection.write('a'.repeat(1_000))
    }
    const [socket] = (await accepted) as [Socket]
    expect(socket.destroyed).toBe(false)
    connection.resume()
    await expect.poll(() => connection.responses, PATIENCE).toHaveLength(1)
    expect(connection.error).toBeUndefined()
  })

  it('takes one read of each turn of the event loop while the rest of its body is discarded', async () => {
    const { api, open } = await setup({ ...never, lingerMs: 2_000 })
    // The first reads come before the answer.
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
    const connections = await Promise.all(Array.from({ length: 10 }, () => open()))
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
    expect(connections.map(statuses)).toEqual(connections.map(() => [401]))
    expect(mostInOneTurn).toBe(1)
  })

  it('buffers only a small part of its body while the key is looked up', async () => {
    const { api, open } = await setup(never)
    const { promise, resolve } = Promise.withResolvers<void>()
    api.registry.beforeAnswer = () => promise
    const { key: unknownKey } = api.registry.addKey()
    api.registry.keysByHash.clear()
    const connection = await open()
    connection.write(postHead(unknownKey, ['Content-Length: 50000000']))
    await expect.poll(() => api.registry.lookups, PATIENCE).toBe(1)
    connection.write(Buffer.alloc(50_000_000, 'a'))
    const flushed = connection.flushed()
    await sleep(300)
    expect(connection.bytesTaken).toBeLessThan(20_000_000)
    resolve()
    await expect.poll(() => statuses(connection), PATIENCE).toEqual([401])
    await flushed
  })
})

describe('garbage after complete requests', () => {
  it('is answered after them and does not affect their answers', async () => {
    const { api, open } = await withoutTimeouts()
    api.queue.holding = true
    const connection = await open()
    connection.write(`${postText(api.key, entryText).repeat(3)}garbage\r\n\r\n`)
    await expect.poll(() => api.queue.adds.length, PATIENCE).toBeGreaterThan(0)
    await sleep(50)
    expect(connection.received).toBe('')
    api.queue.holding = false
    for (const { confirm } of api.queue.adds) confirm()
    await expect.poll(() => statuses(connection), PATIENCE).toEqual([202, 202, 202, 400])
    expect(api.queue.rows).toHaveLength(3)
    await expect.poll(() => connection.isEnded, PATIENCE).toBe(true)
  })

  it('in a body does not affect the answer to the request before', async () => {
    const { api, open } = await withoutTimeouts()
    api.queue.holding = true
    const connection = await open()
    connection.write(
      `${postText(api.key, entryText)}${postHead(api.key, ['Transfer-Encoding: chunked'])}no size\r\n`,
    )
    await expect.poll(() => api.queue.adds.length, PATIENCE).toBe(1)
    await sleep(50)
    expect(connection.received).toBe('')
    for (const { confirm } of api.queue.adds) confirm()
    await expect.poll(() => statuses(connection), PATIENCE).toEqual([202, 400])
    expect(api.queue.rows).toHaveLength(1)
  })

  it('is answered once, and its connection is closed while it continues', async () => {
    const { open } = await withoutTimeouts()
    const connection = await open()
    await dribble(connection, 'garbage\r\n\r\n')
    expect(connection.isClosed).toBe(true)
    expect(statuses(connection)).toEqual([400])
  })
})

describe('a request that only a proxy would handle', () => {
  it('CONNECT is rejected, and the connection is closed', async () => {
    const { open } = await withoutTimeouts()
    const connection = await open()
    connection.write('CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n')
    await expect.poll(() => codes(connection), PATIENCE).toEqual(['method_not_allowed'])
    expect(connection.responses[0]?.headers['allow']).toBe('POST')
    await expect.poll(() => connection.isEnded, PATIENCE).toBe(true)
  })

  it.each(['websocket', 'h2c'])('an upgrade to %s is ignored, and the request is accepted', async (to) => {
    const { api, open } = await withoutTimeouts()
    const connection = await open()
    connection.write(postText(api.key, entryText, ['Connection: Upgrade', `Upgrade: ${to}`]))
    await expect.poll(() => statuses(connection), PATIENCE).toEqual([202])
  })
})

describe('a chunked body', () => {
  it('may have trailers, which are ignored', async () => {
    const { api, open } = await withoutTimeouts()
    const connection = await open()
    const trailers = `0\r\nAuthorization: Bearer unknown\r\nContent-Encoding: gzip\r\n\r\n`
    connection.write(
      postHead(api.key, ['Transfer-Encoding: chunked', 'Trailer: X']) +
        chunkText(entryText) +
        trailers +
        postText(api.key, entryText),
    )
    await expect.poll(() => statuses(connection), PATIENCE).toEqual([202, 202])
    expect(api.queue.rows).toHaveLength(2)
  })

  it.each([
    ['a size without digits', `zz\r\n${entryText}\r\n0\r\n\r\n`],
    ['a negative size', `-1\r\n${entryText}\r\n0\r\n\r\n`],
    ['a size that overflows', `fffffffffffffffff\r\n${entryText}\r\n0\r\n\r\n`],
    ['a size that is too small', `5\r\n${entryText}\r\n0\r\n\r\n`],
    ['a bare line feed', `1e\n${entryText}\n0\n\n`],
    ['an extension that is too long', `1e;${'a'.repeat(20_000)}\r\n${entryText}\r\n0\r\n\r\n`],
  ])('is rejected for %s, and nothing is enqueued', async (_what, text) => {
    const { api, open } = await withoutTimeouts()
    const connection = await open()
    connection.write(postHead(api.key, ['Transfer-Encoding: chunked']) + text)
    await expect.poll(() => codes(connection), PATIENCE).toEqual(['bad_request'])
    expect(api.queue.adds).toEqual([])
  })
})

describe('request smuggling is rejected', () => {
  it.each([
    ['a length and chunks', ['Content-Length: 30', 'Transfer-Encoding: chunked']],
    ['chunks and a length', ['Transfer-Encoding: chunked', 'Content-Length: 30']],
    ['two lengths', ['Content-Length: 30', 'Content-Length: 31']],
    ['the same length twice', ['Content-Length: 30', 'Content-Length: 30']],
    ['a list of lengths', ['Content-Length: 30, 30']],
    ['a length with a sign', ['Content-Length: +30']],
    ['a space before a colon', ['Content-Length : 30']],
    ['chunked, but not last', ['Transfer-Encoding: chunked, identity']],
    ['transfer encodings on two lines', ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity']],
    ['a folded length', ['Content-Length:', ' 30']],
    ['a carriage return in a header', ['X-Note: a\rContent-Length: 30']],
    ['a bare line feed in a header', ['X-Note: a\nContent-Length: 30']],
  ])('with %s', async (_what, lines) => {
    const { api, open } = await withoutTimeouts()
    const connection = await open()
    connection.write(`${postHead(api.key, lines)}${entryText}`)
    await expect.poll(() => codes(connection), PATIENCE).toEqual(['bad_request'])
    expect(api.queue.adds).toEqual([])
  })

  it('uses the first of two media types', async () => {
    const { api, open } = await withoutTimeouts()
    const connection = await open()
    connection.write(postText(api.key, entryText, ['Content-Type: application/x-ndjson']))
    await expect.poll(() => statuses(connection), PATIENCE).toEqual([202])
    expect(connection.responses[0]?.body).toContain('"status":"accepted"')
  })
})

describe('an upload that is aborted', () => {
  it.each([
    ['within its headers', (key: string) => postHead(key, ['Content-Length: 30']).slice(0, -20)],
    ['before its body', (key: string) => postHead(key, ['Content-Length: 30'])],
    ['within its body', (key: string) => `${postHead(key, ['Content-Length: 30'])}{"level"`],
    ['within a chunk', (key: string) => `${postHead(key, ['Transfer-Encoding: chunked'])}1e\r\n{"level"`],
    [
      'before the last chunk',
      (key: string) => `${postHead(key, ['Transfer-Encoding: chunked'])}${chunkText(entryText)}`,
    ],
  ])('%s leaves nothing behind', async (_where, text) => {
    const { api, open } = await withoutTimeouts()
    const connection = await open()
    connection.write(text(api.key))
    await sleep(30)
    connection.destroy()
    const count = (): Promise<number> =>
      new Promise((resolve) => api.app.server.getConnections((_error, connections) => resolve(connections)))
    await expect.poll(count, PATIENCE).toBe(0)
    expect(api.queue.adds).toEqual([])
  })
})
