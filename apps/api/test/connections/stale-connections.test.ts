import { EventEmitter } from 'node:events'
import { beforeEach, describe, expect, it } from 'vitest'
import type { HttpSocket } from '../../src/connections/http-socket.ts'
import { StaleConnections } from '../../src/connections/stale-connections.ts'

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
  stale = new StaleConnections({ staleMs: STALE_MS }, () => nowMs)
  socket = new FakeSocket()
  stale.add(socket as unknown as HttpSocket)
})

function checkAt(timeMs: number): boolean {
  nowMs = timeMs
  stale.check()
  return socket.destroyed
}

describe('a connection is closed', () => {
  it('without an answer for the whole time', () => {
    expect(checkAt(STALE_MS - 1)).toBe(false)
    expect(checkAt(STALE_MS)).toBe(true)
  })

  it('at that time after its last answer', () => {
    socket.bytesWritten = 100
    expect(checkAt(900)).toBe(false)
    expect(checkAt(1_899)).toBe(false)
    expect(checkAt(1_900)).toBe(true)
  })

  it('while its client reads the answer slowly', () => {
    socket.response = {}
    socket.bytesWritten = 1_000_000
    for (const [timeMs, unread] of [
      [100, 900_000],
      [600, 899_999],
      [1_099, 899_998],
    ] as const) {
      socket.writableLength = unread
      expect(checkAt(timeMs)).toBe(false)
    }
    expect(checkAt(1_100)).toBe(true)
  })
})

describe('a connection is kept', () => {
  it('while a request is handled', () => {
    socket.response = {}
    for (let timeMs = 0; timeMs < 10 * STALE_MS; timeMs += 500) expect(checkAt(timeMs)).toBe(false)
    socket.response = null
    expect(checkAt(10 * STALE_MS)).toBe(false)
    expect(checkAt(11 * STALE_MS)).toBe(true)
  })

  it('while it gets answers', () => {
    for (let timeMs = 0; timeMs < 10 * STALE_MS; timeMs += 900) {
      socket.bytesWritten += 100
      expect(checkAt(timeMs)).toBe(false)
    }
  })
})

it('a connection that was closed is forgotten', () => {
  socket.destroy()
  socket.destroyed = false
  expect(checkAt(10 * STALE_MS)).toBe(false)
})
