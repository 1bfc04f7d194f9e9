import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { onTestFinished } from 'vitest'

/**
 * Starts a server that speaks the protocol of Redis, until the end of the test.
 *
 * @param reply to a command, both as they are sent
 * @returns its port
 */
export async function fakeServer(reply: (command: string) => string): Promise<number> {
  const server = createServer((socket) => {
    socket.on('data', (data) => {
      const [, ...commands] = data.toString().split(/^\*\d+\r$/m)
      for (const command of commands) socket.write(reply(command))
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

/** An array of replies. */
export const list = (replies: readonly string[]): string => `*${replies.length}\r\n${replies.join('')}`

/** An array of strings. */
export const strings = (items: readonly string[]): string =>
  list(items.map((item) => `$${item.length}\r\n${item}\r\n`))
