import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { HttpConnection } from '../src/http-connection.ts'
import { eventually } from '../src/waiting.ts'

/** Only for stalls: a busy machine may pause for seconds. */
const DEADLINE_MS = 15_000
const ok = (body: string): string => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`

let server: Server
let connection: HttpConnection
let accepted: Socket

beforeEach(async () => {
  server = createServer({ allowHalfOpen: true })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const connected = once(server, 'connection')
  connection = await HttpConnection.open((server.address() as AddressInfo).port)
  accepted = ((await connected) as [Socket])[0]
  accepted.on('error', () => undefined)
})

afterEach(async () => {
  connection.destroy()
  accepted.destroy()
  server.close()
  await once(server, 'close')
})

describe('responses', () => {
  it('are the complete final ones, and stay received', async () => {
    accepted.write(`HTTP/1.1 100 Continue\r\n\r\n${ok('first')}${ok('second').slice(0, -1)}`)
    await eventually(async () =>
      expect(connection.responses).toEqual([
        {
          status: 200,
          headers: { 'content-length': '5' },
          body: 'first',
          bytes: Buffer.from('first'),
        },
      ]),
    )
    expect(connection.received).toContain('100 Continue')
    accepted.write('d')
    await eventually(async () => expect(connection.responses).toHaveLength(2))
    expect(connection.responses[1]?.body).toBe('second')
  })
})

describe('readResponses', () => {
  it('consumes the responses in order, whatever pieces they arrive in', async () => {
    const reading = connection.readResponses([false, true, false], DEADLINE_MS)
    const text = `${ok('a')}HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n${ok('c')}`
    for (const byte of text) accepted.write(byte)
    expect((await reading).map(({ body }) => body)).toEqual(['a', '', 'c'])
    expect(connection.received).toBe('')
  })

  it.each([
    ['not a status line', 'HELLO\r\n\r\n', 'not a status line: "HELLO"'],
    ['not a header', 'HTTP/1.1 200 OK\r\nbad header\r\n\r\n', 'not a header: "bad header"'],
    ['without a length', 'HTTP/1.1 200 OK\r\n\r\n', 'a 200 with the Content-Length ""'],
    ['followed by more', `${ok('a')}x`, 'more arrived than was requested: "x"'],
  ])('rejects a response that is %s', async (_what, text, message) => {
    accepted.write(text)
    await expect(connection.readResponses([false], DEADLINE_MS)).rejects.toThrow(message)
  })

  it('rejects after the deadline', async () => {
    await expect(connection.readResponses([false], 50)).rejects.toMatchObject({ code: 'TIMEOUT' })
  })

  it('rejects when the server closes the connection while it waits', async () => {
    const reading = connection.readResponses([false], DEADLINE_MS)
    accepted.end()
    await expect(reading).rejects.toMatchObject({ code: 'CLOSED' })
    expect(connection).toMatchObject({ isEnded: true, isClosed: false, isOpen: false })
  })

  it('rejects when the connection was reset before', async () => {
    accepted.resetAndDestroy()
    await eventually(async () => expect(connection.isClosed).toBe(true))
    await expect(connection.readResponses([false], DEADLINE_MS)).rejects.toMatchObject({ code: 'ECONNRESET' })
  })
})

describe('readToEnd', () => {
  it('closes the sending direction, and returns what arrives until the server closes', async () => {
    accepted.on('end', () => accepted.end(ok('last')))
    accepted.resume()
    accepted.write(ok('first'))
    expect((await connection.readToEnd(DEADLINE_MS)).map(({ body }) => body)).toEqual(['first', 'last'])
  })

  it('returns what arrived before a reset', async () => {
    accepted.write(ok('first'))
    await eventually(async () => expect(connection.responses).toHaveLength(1))
    accepted.resetAndDestroy()
    expect(await connection.readToEnd(DEADLINE_MS)).toHaveLength(1)
  })

  it('rejects an incomplete response, and a server that does not close', async () => {
    accepted.write(ok('first').slice(0, -1))
    await expect(connection.readToEnd(50)).rejects.toMatchObject({ code: 'TIMEOUT' })
    accepted.end()
    await expect(connection.readToEnd(DEADLINE_MS)).rejects.toThrow('an incomplete response')
  })
})

describe('flushed', () => {
  it('resolves when the kernel has everything, or the connection is closed', async () => {
    accepted.pause()
    const bytes = 30_000_000
    connection.write(Buffer.alloc(bytes))
    let isFlushed = false
    const flushed = connection.flushed().then(() => (isFlushed = true))
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(isFlushed).toBe(false)
    expect(connection.bytesTaken).toBeLessThan(bytes)
    accepted.resume()
    await flushed
    expect(connection.bytesTaken).toBe(bytes)
    connection.destroy()
    await connection.flushed()
  })
})
