import { randomInt } from 'node:crypto'
import { claimPort, probePort } from '@sluice/runtime'

/** Another program may take a port between the check and the start. Three times in a row is not a coincidence. */
const START_ATTEMPTS_MAX = 3
/** Below the ports that systems use for outgoing connections, which could take a port between the check and the start. */
const RANGE = { first: 20_000, size: 12_000 }
const CHECKS_MAX = 100

export class Ports {
  /** No port is returned twice: the process that gets it may not be listening yet at the next call. */
  #offset = randomInt(RANGE.size)

  /** @returns the preferred port if it is free; otherwise a free port that was never returned before */
  async free(preferred?: number): Promise<number> {
    if (preferred !== undefined && (await probePort(preferred)) === undefined) return preferred
    for (let checks = 0; checks < CHECKS_MAX; checks++) {
      const port = RANGE.first + (this.#offset++ % RANGE.size)
      // As long as this process lives: another supervisor would take the answers of its own process for those of one that has crashed.
      const claimed = await claimPort('127.0.0.1', port, 'sluice-local').catch(() => undefined)
      if (claimed !== undefined) return port
    }
    throw new Error(`no free port found in ${CHECKS_MAX} attempts`)
  }

  /** Starts something on a free port. If another program takes the port first, it is started on another one. */
  async startOn<T>(preferred: number | undefined, start: (port: number) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const port = await this.free(attempt === 1 ? preferred : undefined)
      try {
        return await start(port)
      } catch (error) {
        if (attempt === START_ATTEMPTS_MAX || (await probePort(port)) === undefined) throw error
      }
    }
  }
}
