import type { PinoConfig } from './line-entry.ts'

/** The levels of every logger. */
export const pinoLevelNames: Readonly<Record<string, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'error',
  60: 'fatal',
}

/** The message that pino sends to the thread when a logger is created. */
interface ConfigMessage {
  readonly code?: unknown
  readonly config?: {
    readonly levels?: { readonly labels?: Readonly<Record<string, string>> }
    readonly messageKey?: string
    readonly errorKey?: string
  }
}

type Listener = (message: ConfigMessage | undefined) => void
/** The part of `parentPort` that is used. */
export interface ConfigPort {
  on(event: 'message', listener: Listener): unknown
  off(event: 'message', listener: Listener): unknown
}

/**
 * pino sends the message before the first line. It may never arrive: with several transports, the first one that is loaded may be the
 * only one that gets it.
 */
const CONFIG_WAIT_MS = 1_000

/** Receives the levels and the keys of the logger. */
export class PinoConfigReceiver {
  readonly #options: Partial<PinoConfig>
  readonly #received: Promise<void>
  readonly #waitMs: number
  #config: PinoConfig

  /** @param port where messages of pino arrive. Null outside of a thread */
  constructor(port: ConfigPort | null, options: Partial<PinoConfig>, waitMs = CONFIG_WAIT_MS) {
    this.#options = options
    this.#waitMs = waitMs
    this.#config = { levelNames: pinoLevelNames, messageKey: 'msg', errorKey: 'err', ...options }
    this.#received = port === null ? Promise.resolve() : this.#receive(port)
  }

  get config(): PinoConfig {
    return this.#config
  }

  /** Resolves when the message has arrived, or is unlikely to arrive. */
  async wait(): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#waitMs)
    })
    await Promise.race([this.#received, timeout])
    clearTimeout(timer)
  }

  #receive(port: ConfigPort): Promise<void> {
    return new Promise((resolve) => {
      const listener: Listener = (message) => {
        if (message?.code !== 'PINO_CONFIG') return
        port.off('message', listener)
        const { levels, messageKey, errorKey } = message.config ?? {}
        this.#config = {
          ...this.#config,
          ...(levels?.labels && { levelNames: levels.labels }),
          ...(messageKey !== undefined && { messageKey }),
          ...(errorKey !== undefined && { errorKey }),
          ...this.#options,
        }
        resolve()
      }
      port.on('message', listener)
    })
  }
}
