import { EventEmitter } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { beforeEach, describe, expect, it } from 'vitest'
import { type HttpSocket, StaleConnections } from '../../src/connections/http-server.ts'

const STALE_MS = 1_000

class FakeSocket extends EventEmitter {
  bytesWritten = 0
  writableLength = 0
  destroyed = false
  response: object | null = null

  get _httpMessage(): object | null {
    return this.response
  }

  destroy(): void {
    this.destroyed = true
    this.emit('close')
  }
}

let nowMs: number
let stale: StaleConnections
let socket: FakeSocket

beforeEach(() => {
  nowMs = 0
  stale = new StaleConnections(STALE_MS, () => nowMs)
  socket = new FakeSocket()
  stale.add(socket as unknown as HttpSocket)
})

async function checkAt(timeMs: number): Promise<boolean> {
  nowMs = timeMs
  stale.check()
  await setImmediate()
  return socket.destroyed
}

describe('a connection is closed', () => {
  it('without a response for the whole time', async () => {
    expect(await checkAt(STALE_MS - 1)).toBe(false)
    expect(await checkAt(STALE_MS)).toBe(true)
  })

  it('at that time after its last response', async () => {
    socket.bytesWritten = 100
    expect(await checkAt(900)).toBe(false)
    expect(await checkAt(1_899)).toBe(false)
    expect(await checkAt(1_900)).toBe(true)
  })

  it('while its client reads the response slowly', async () => {
    socket.response = {}
    socket.bytesWritten = 1_000_000
    for (const timeMs of [100, 600, 1_099]) {
      socket.writableLength = 1_000_000 - timeMs
      expect(await checkAt(timeMs)).toBe(false)
    }
    expect(await checkAt(1_100)).toBe(true)
  })
})

it('thousands of connections are closed one by one, so that they do not fill a turn of the event loop', async () => {
  const sockets = Array.from({ length: 3 }, () => new FakeSocket())
  for (const each of sockets) stale.add(each as unknown as HttpSocket)
  const counts: number[] = []
  for (let turn = 0; turn < 4; turn += 1) {
    await checkAt(STALE_MS)
    counts.push([socket, ...sockets].filter(({ destroyed }) => destroyed).length)
  }
  expect(counts).toEqual([1, 2, 3, 4])
})

it('a connection is kept while a request is handled', async () => {
  socket.response = {}
  for (let timeMs = 0; timeMs < 10 * STALE_MS; timeMs += 500) expect(await checkAt(timeMs)).toBe(false)
  socket.response = null
  expect(await checkAt(10 * STALE_MS)).toBe(false)
  expect(await checkAt(11 * STALE_MS)).toBe(true)
})

it('a connection that was closed is forgotten', async () => {
  socket.destroy()
  socket.destroyed = false
  expect(await checkAt(10 * STALE_MS)).toBe(false)
})
