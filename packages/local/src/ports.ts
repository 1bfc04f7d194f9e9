import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

const HOST = '127.0.0.1'
/** The chance that another program takes a port between the look and the start is small; thrice in a row it is none. */
const ATTEMPTS_MAX = 3
/** Below the ports that systems give to outgoing connections, which would come and go between the look and the start. */
const RANGE = { first: 20_000, size: 12_000 }
const TRIES_MAX = 100

/** What this process has been given: none is given twice, since whoever asked first may not listen yet. */
const given = new Set<number>()

/** Tries to listen on a port, and gives it back or the reason that it cannot be had (EADDRINUSE, EACCES, …). */
export function probePort(port: number): Promise<{ port: number } | { code: string }> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve({ code: error.code ?? 'EUNKNOWN' }))
    server.listen(port, HOST, () => server.close(() => resolve({ port })))
  })
}

/** A port on 127.0.0.1 that nobody listens on: the preferred one if that is free, else one never given before. */
export async function freePort(preferred?: number): Promise<number> {
  if (preferred !== undefined && 'port' in (await probePort(preferred))) return preferred
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const port = RANGE.first + randomInt(RANGE.size)
    if (given.has(port)) continue
    given.add(port)
    if ('port' in (await probePort(port))) return port
  }
  throw new Error('no free port was found')
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
