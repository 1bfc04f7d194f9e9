import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** Whether several sockets and processes can listen on one port (`SO_REUSEPORT`). Node supports it on few other systems, and not on macOS. */
export const canSharePorts = process.platform === 'linux'

/** @returns why nothing can listen on a port; undefined if something can */
export async function probePort(port: number, host = '127.0.0.1'): Promise<string | undefined> {
  try {
    await listenBriefly(host, port)
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'EUNKNOWN'
  }
}

/**
 * Claims a port that several sockets will share: the kernel would let every process of the same user join them, and give it a part of the
 * connections. The port must be free. Until those sockets listen, an abstract Unix socket keeps others away who claim the same port.
 *
 * @param port 0 selects a free one
 * @param owner each claims the same ports for itself
 * @returns the port, and how to end the claim. It also ends with the process
 * @throws the error of a listener on this port if another process listens there, or has claimed it
 */
export async function claimPort(host: string, port: number, owner = 'sluice') {
  const chosen = port === 0 ? await listenBriefly(host, 0) : port
  const claim = createServer().unref()
  try {
    if (canSharePorts) await once(claim.listen(`\0${owner}:${host}:${chosen}`), 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const message = `listen ${code}: address already in use ${host}:${chosen}`
    // Where there are no such sockets, or not for so long a name, the port is only tested.
    if (code === 'EADDRINUSE')
      throw Object.assign(new Error(message, { cause: error }), { code, syscall: 'listen' })
  }
  try {
    await listenBriefly(host, chosen)
  } catch (error) {
    claim.close()
    throw error
  }
  return { port: chosen, close: () => void claim.close() }
}

/** Listens for a moment, and shares the port with nobody. @returns the port */
async function listenBriefly(host: string, port: number): Promise<number> {
  const server = createServer()
  await once(server.listen(port, host), 'listening')
  const { port: bound } = server.address() as AddressInfo
  await once(server.close(), 'close')
  return bound
}
