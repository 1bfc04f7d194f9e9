import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { FaultProxy } from '../src/fault-proxy.ts'
import { eventually, pause } from '../src/waiting.ts'

/** A socket with what it has received, and how it was closed. */
interface Recorded {
  readonly socket: Socket
  text: string
  ended: boolean
  error: string | undefined
  closed: boolean
}

function record(socket: Socket): Recorded {
  const recorded: Recorded = { socket, text: '', ended: false, error: undefined, closed: false }
  socket.setEncoding('utf8')
  socket.on('data', (text: string) => (recorded.text += text))
  socket.on('end', () => (recorded.ended = true))
  socket.on('error', (error: NodeJS.ErrnoException) => (recorded.error = error.code))
  socket.on('close', () => (recorded.closed = true))
  return recorded
}

let server: Server
let proxy: FaultProxy
let client: Recorded
let target: Recorded

async function connectThrough(): Promise<void> {
  const accepted = once(server, 'connection')
  client = record(connect(proxy.port, '127.0.0.1'))
  target = record(((await accepted) as [Socket])[0])
}

const become = (recorded: Recorded, expected: Partial<Recorded>): Promise<void> =>
  eventually(async () => expect(recorded).toMatchObject(expected))

beforeEach(async () => {
  server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  proxy = await FaultProxy.open(`redis://:secret@127.0.0.1:${(server.address() as AddressInfo).port}/1`)
  await connectThrough()
})

afterEach(async () => {
  client.socket.destroy()
  target.socket.destroy()
  await proxy.down()
  server.close()
  await once(server, 'close')
})

it('has the URL of its target, and forwards bytes and ends in both directions', async () => {
  expect(proxy.url).toBe(`redis://:secret@127.0.0.1:${proxy.port}/1`)
  client.socket.write('question')
  await become(target, { text: 'question' })
  target.socket.end('answer')
  await become(client, { text: 'answer', ended: true })
  await become(target, { closed: true, error: undefined })
})

it('resets every connection and lets new ones fail while it is down, until it is up on the same port', async () => {
  const { port } = proxy
  expect(proxy.reset()).toBe(1)
  await become(client, { error: 'ECONNRESET' })
  await become(target, { error: 'ECONNRESET' })
  await connectThrough()
  await proxy.down()
  await proxy.down()
  await become(client, { error: 'ECONNRESET' })
  await expect(once(connect(port, '127.0.0.1'), 'connect')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  await proxy.up()
  expect(proxy.port).toBe(port)
  await connectThrough()
  client.socket.write('question')
  await become(target, { text: 'question' })
})

it('holds the bytes of one direction, and the end of a connection, until it resumes', async () => {
  proxy.hold('request')
  client.socket.write('question')
  await eventually(async () => expect(proxy.heldBytes('request')).toBe(8))
  target.socket.write('unasked')
  await become(client, { text: 'unasked' })
  expect(target.text).toBe('')
  proxy.resume()
  await become(target, { text: 'question' })
  proxy.hold('answer')
  target.socket.write('last words')
  target.socket.resetAndDestroy()
  await pause(100)
  expect(client).toMatchObject({ text: 'unasked', closed: false })
  proxy.resume()
  await become(client, { closed: true })
})

it('silences the open connections without closing them, and new ones work', async () => {
  client.socket.write('before')
  await become(target, { text: 'before' })
  expect(proxy.silence()).toBe(1)
  const [silent, silentTarget] = [client, target]
  silent.socket.write('lost')
  silentTarget.socket.write('lost')
  await connectThrough()
  client.socket.write('after')
  await become(target, { text: 'after' })
  proxy.heal()
  await pause(100)
  expect([silent.text, silentTarget.text, silent.closed]).toEqual(['', 'before', false])
  silent.socket.destroy()
})

it('cuts a request after the given bytes, which arrive, counted from when the cut is armed', async () => {
  client.socket.write('before')
  await become(target, { text: 'before' })
  proxy.armCut({ direction: 'request', afterBytes: 5 })
  client.socket.write('1234')
  await become(target, { text: 'before1234' })
  proxy.disarmCut()
  client.socket.write('56')
  await become(target, { text: 'before123456' })
  expect(proxy.cuts).toBe(0)
  proxy.armCut({ direction: 'request', afterBytes: 5 })
  client.socket.write('abc')
  client.socket.write('defg')
  await become(target, { text: 'before123456abcde', ended: true, error: undefined })
  await become(client, { error: 'ECONNRESET' })
  expect(proxy.cuts).toBe(1)
})

it('cuts a response after the given bytes, and does not affect requests', async () => {
  proxy.armCut({ direction: 'answer', afterBytes: 2 })
  client.socket.write('question')
  await become(target, { text: 'question' })
  target.socket.write('answer')
  await become(client, { text: 'an', ended: true })
  expect(proxy.cuts).toBe(1)
})

it('cuts the response to the first request with the given text', async () => {
  proxy.cutAnswerTo('marked')
  client.socket.write('other')
  await become(target, { text: 'other' })
  target.socket.write('answer')
  await become(client, { text: 'answer' })
  client.socket.write('a marked request')
  await become(target, { text: 'othera marked request' })
  target.socket.write('never forwarded')
  await become(client, { text: 'answer', ended: true })
  expect(proxy.cuts).toBe(1)
  await connectThrough()
  client.socket.write('a marked request')
  target.socket.write('answer')
  await become(client, { text: 'answer' })
})
