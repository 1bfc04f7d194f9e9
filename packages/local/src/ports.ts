import { type AddressInfo, createServer } from 'node:net'

const HOST = '127.0.0.1'
/** The chance that another program takes a port between the look and the start is small; thrice in a row it is none. */
const ATTEMPTS_MAX = 3

/** Tries to listen on a port, 0 for any, and gives back the port or the reason (EADDRINUSE, EACCES, …). */
export function probePort(port: number): Promise<{ port: number } | { code: string }> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve({ code: error.code ?? 'EUNKNOWN' }))
    server.listen(port, HOST, () => {
      const { port: bound } = server.address() as AddressInfo
      server.close(() => resolve({ port: bound }))
    })
  })
}

/** A port on 127.0.0.1 that nobody listens on: the preferred one if that is free. */
export async function freePort(preferred?: number): Promise<number> {
  for (const candidate of preferred === undefined ? [0] : [preferred, 0]) {
    const probe = await probePort(candidate)
    if ('port' in probe) return probe.port
  }
  throw new Error('the system gives no free port')
}

/** Starts something on a free port; on another one if somebody else was faster. */
export async function onFreePort<T>(
  preferred: number | undefined,
  start: (port: number) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort(attempt === 1 ? preferred : undefined)
    try {
      return await start(port)
    } catch (error) {
      if (attempt === ATTEMPTS_MAX || 'port' in (await probePort(port))) throw error
    }
  }
}
