import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** A connection of Node's HTTP server, with the parts that Node does not document. */
export interface HttpSocket extends Socket {
  /** Node's handler of parser errors uses it as well. */
  readonly _httpMessage?: ServerResponse | null
  readonly parser?: HttpParser | null
}

/** The response that Node is writing to the socket. Undefined between requests. */
export function currentResponse({ _httpMessage: response }: HttpSocket): ServerResponse | undefined {
  return response ?? undefined
}

interface HttpParser {
  /** Called when the head of a request is complete. After a negative result the parser fails at once. */
  onIncoming: (request: IncomingMessage, keepAlive: boolean) => number
}

/**
 * Stops reading from the connection until Node resumes it. If the stream is paused while it is being resumed, Node starts reading
 * although it stays paused, and `pause` alone has no effect. Node stops reading in its listener of the event.
 */
export function stopReading(socket: Socket): void {
  socket.pause()
  socket.emit('pause')
}

const REJECT_HEAD = -1

/**
 * Makes the parser fail at a head, before Node makes a response for it, unless `hasRoom` returns true. The code of the error is
 * `HPE_CB_HEADERS_COMPLETE`.
 */
export function limitHeads(socket: HttpSocket, hasRoom: (socket: HttpSocket) => boolean): void {
  const parser = socket.parser ?? undefined
  if (parser === undefined) return
  const { onIncoming } = parser
  parser.onIncoming = (request, keepAlive) => (hasRoom(socket) ? onIncoming(request, keepAlive) : REJECT_HEAD)
}
