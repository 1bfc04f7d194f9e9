import { canSharePorts, claimPort } from '@sluice/runtime'
import type { FastifyInstance } from 'fastify'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'

/**
 * Sockets that accept connections. libuv accepts one connection of a socket in each turn of the event loop, and under load a turn takes
 * tens of milliseconds: with one socket, the last of 1,000 clients that reconnect at once is answered after 4 to 23 s, with 16 after 1.5 s,
 * with 64 after 0.6 to 1.4 s, and with 128 or 256 hardly sooner.
 */
const SOCKETS = canSharePorts ? 64 : 1

/**
 * Connections that the operating system may hold for each socket until they are accepted. Above that, a client retries after a second.
 * Linux limits it to `net.core.somaxconn`, 4,096 by default.
 */
const CONNECTIONS_WAITING_MAX = 4_096

/**
 * Makes the API listen.
 *
 * @param isShared whether other processes listen on the port too. If not, it must be free
 * @returns its URL, and how to close it: it accepts nothing more, and answers the requests that it has
 */
export async function listen(
  app: FastifyInstance,
  host: string,
  port: number,
  isShared: boolean,
): Promise<{ url: string; close: () => Promise<void> }> {
  const claim = isShared || port === 0 ? undefined : await claimPort(host, port)
  const options = { backlog: CONNECTIONS_WAITING_MAX, reusePort: canSharePorts }
  const url = await app.listen({ ...options, host, port })
  const { address, port: bound } = app.server.address() as AddressInfo
  const acceptors = Array.from({ length: SOCKETS - 1 }, () =>
    // The options with which Node's HTTP server accepts its own connections.
    createServer({ allowHalfOpen: true, noDelay: true }, (socket) => app.server.emit('connection', socket)),
  )
  await Promise.all(
    acceptors.map((acceptor) =>
      once(acceptor.listen({ ...options, host: address, port: bound }), 'listening'),
    ),
  )
  return {
    url,
    close: async () => {
      claim?.close()
      const closed = acceptors.map((acceptor) => once(acceptor.close(), 'close'))
      // Fastify closes the connections of all sockets that are idle now. A client could keep the others for `idleMs` after their last
      // response. Node adds a second, in which another request gets `Connection: close`.
      app.server.keepAliveTimeout = 1
      await Promise.all([app.close(), ...closed])
    },
  }
}
