import { Turns } from '../turns.ts'
import type { ConnectionLimits } from './connection-limits.ts'
import { currentResponse, type HttpSocket } from './http-socket.ts'

interface Progress {
  bytesWritten: number
  sinceMs: number
}

/**
 * Closes connections that had no answer for `staleMs`, and whose next request is not being handled. Their client either sends
 * something other than a request, or does not read the answer. Node's own timeouts start again with every byte.
 */
export class StaleConnections {
  readonly #limits: Pick<ConnectionLimits, 'staleMs'>
  readonly #monotonicMs: () => number
  readonly #connections = new Map<HttpSocket, Progress>()
  readonly #turns = Turns.unshared()

  constructor(limits: Pick<ConnectionLimits, 'staleMs'>, monotonicMs: () => number) {
    this.#limits = limits
    this.#monotonicMs = monotonicMs
  }

  /** To be called for each new connection. */
  add(socket: HttpSocket): void {
    this.#connections.set(socket, { bytesWritten: 0, sinceMs: this.#monotonicMs() })
    // Prepended, because `on` and `once` would make an array of two listeners where Node also makes those of each request. If hundreds of
    // connections open together, V8 learns that arrays from there live long, and allocates all of them in the old generation. Each then
    // keeps its request until the next major collection: scavenges took three times as long, a tenth of the CPU time of a request.
    socket.prependListener('close', () => this.#connections.delete(socket))
  }

  /** To be called at an interval. */
  check(): void {
    const nowMs = this.#monotonicMs()
    for (const [socket, progress] of this.#connections) {
      const { bytesWritten, writableLength } = socket
      const isHandled = currentResponse(socket) !== undefined && writableLength === 0
      if (isHandled || bytesWritten !== progress.bytesWritten) {
        progress.bytesWritten = bytesWritten
        progress.sinceMs = nowMs
      } else if (nowMs - progress.sinceMs >= this.#limits.staleMs) {
        this.#connections.delete(socket)
        // To close thousands in one turn of the event loop would take half a second.
        void this.#turns.next().then(() => socket.destroy())
      }
    }
  }
}
