import type { MessagePort } from 'node:worker_threads'
import type { ClientOptions, Hooks } from '@sluice/client'
import type { DiskSpoolOptions } from '@sluice/client/spool'

/** The custom levels of a logger: their numbers by their names. */
export type PinoLevels = Readonly<Record<string, number>>

/**
 * What is done with lines that do not fit into the queue. `wait`: the thread of the transport waits for the API, for some seconds at most.
 * With pino's option `sync`, the application waits too.
 */
export type WhenFull = 'drop' | 'wait'

/** The options under `transport.options`. They cross to another thread, so they have no functions. */
export interface SluiceTransportOptions extends Omit<
  ClientOptions,
  keyof Hooks | 'apiKey' | 'fetch' | 'flushOnExit' | 'spool' | 'url'
> {
  /** The address of the API. Default: the environment variable SLUICE_API_URL. */
  readonly url?: string | undefined
  /** Default: the environment variable SLUICE_API_KEY. */
  readonly apiKey?: string | undefined
  /** Keeps entries on disk until the API has accepted them. */
  readonly spool?: DiskSpoolOptions | undefined
  readonly whenFull?: WhenFull | undefined
  /** The longest wait for the API when the application ends, or flushes the logger. */
  readonly flushTimeoutMs?: number | undefined
  /** Default: the logger's. */
  readonly messageKey?: string | undefined
  /** Default: the logger's. */
  readonly errorKey?: string | undefined
  /** Default: the logger's. */
  readonly customLevels?: PinoLevels | undefined
}

/** The logger's settings that the transport needs to read its lines. */
export interface PinoConfig {
  /** The names of levels, by their numbers. */
  readonly levelNames: Readonly<Record<string, string>>
  readonly messageKey: string
  readonly errorKey: string
}

/** Long enough for some retries. The application waits this long for an API that does not respond. */
const FLUSH_TIMEOUT_MS = 5_000
/** pino's thread stream gives the transport up after 10 s. */
const FLUSH_TIMEOUT_MS_MAX = 9_000

export interface Settings {
  readonly client: ClientOptions
  readonly spool: DiskSpoolOptions | undefined
  readonly whenFull: WhenFull
  readonly flushTimeoutMs: number
  /** What precedes the configuration of the logger. */
  readonly pinoConfig: Partial<PinoConfig>
}

export function readOptions(
  options: SluiceTransportOptions,
  environment: Readonly<Record<string, string | undefined>>,
): Settings {
  const {
    whenFull = 'drop',
    flushTimeoutMs = FLUSH_TIMEOUT_MS,
    messageKey,
    errorKey,
    customLevels,
    spool,
    ...rest
  } = options
  const { url = environment['SLUICE_API_URL'] ?? '', apiKey = environment['SLUICE_API_KEY'] ?? '' } = rest
  if (url === '') throw new TypeError('the address of Sluice is missing: set `options.url` or SLUICE_API_URL')
  if (apiKey === '') throw new TypeError('the API key is missing: set `options.apiKey` or SLUICE_API_KEY')
  if (whenFull !== 'drop' && whenFull !== 'wait') throw new TypeError('`whenFull` must be one of drop, wait')
  if (!Number.isInteger(flushTimeoutMs) || flushTimeoutMs < 0 || flushTimeoutMs > FLUSH_TIMEOUT_MS_MAX)
    throw new TypeError(`\`flushTimeoutMs\` must be an integer from 0 to ${FLUSH_TIMEOUT_MS_MAX}`)
  return {
    // The thread is told by pino when the process ends.
    client: { ...rest, url, apiKey, flushOnExit: false },
    spool,
    whenFull,
    flushTimeoutMs,
    pinoConfig: {
      ...(messageKey !== undefined && { messageKey }),
      ...(errorKey !== undefined && { errorKey }),
      ...(customLevels !== undefined && { levelNames: namesByNumber(customLevels) }),
    },
  }
}

function namesByNumber(levels: PinoLevels): Record<string, string> {
  const named = Object.entries(levels).map(([name, number]) => [number, name])
  return { ...pinoLevelNames, ...Object.fromEntries(named) }
}

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

/**
 * pino sends the message before the first line. It may never arrive: with several transports, the first that is loaded may be the only
 * one to get it.
 */
const CONFIG_WAIT_MS = 1_000

/**
 * Listens for the levels and the keys of the logger. The function that is returned resolves with them, when the message has arrived or is
 * unlikely to arrive.
 *
 * @param port where messages of pino arrive. Null outside of a thread
 * @param options precede what the message says
 */
export function receiveConfig(
  port: Pick<MessagePort, 'off' | 'on'> | null,
  options: Partial<PinoConfig>,
): () => Promise<PinoConfig> {
  const received = new Promise<ConfigMessage['config']>((resolve) => {
    if (port === null) return resolve(undefined)
    const listener = (message: ConfigMessage | undefined): void => {
      if (message?.code !== 'PINO_CONFIG') return
      port.off('message', listener)
      resolve(message.config)
    }
    port.on('message', listener)
  })
  return async () => {
    const late = new Promise<undefined>((resolve) => {
      setTimeout(() => resolve(undefined), CONFIG_WAIT_MS).unref()
    })
    const { levels, messageKey = 'msg', errorKey = 'err' } = (await Promise.race([received, late])) ?? {}
    return { levelNames: levels?.labels ?? pinoLevelNames, messageKey, errorKey, ...options }
  }
}
