// An application that logs with pino, in a process of its own. It does what the messages of its parent say.
import { setImmediate } from 'node:timers/promises'
import { type LoggerOptions, pino } from 'pino'

export interface ApplicationSettings {
  readonly pino?: LoggerOptions
  readonly transport: object
}

export type Command =
  /** Logs `m-<from>` to `m-<to - 1>`, with other work in between if `turns` is set. Returns how long it took. */
  | { act: 'log'; from: number; to: number; turns?: number; pad?: number }
  | { act: 'fields'; level: string; fields: object; message?: string }
  | { act: 'error'; message: string }
  | { act: 'flush' }
  /** Returns the bytes of lines that pino has not passed to the transport. */
  | { act: 'memory' }
  /** Has nothing else to do. */
  | { act: 'end' }
  | { act: 'exit'; code: number }
  | { act: 'throw' }

const settings = JSON.parse(process.argv[2] ?? '') as ApplicationSettings
const transport = settings.transport as LoggerOptions['transport'] & object
const logger = pino({ ...settings.pino, transport })

async function run(command: Command): Promise<unknown> {
  switch (command.act) {
    case 'log':
      return log(command)
    case 'fields':
      return logFields(command)
    case 'error':
      return logger.error(new TypeError(command.message))
    case 'flush':
      return new Promise<void>((resolve) => logger.flush(() => resolve()))
    case 'memory':
      return process.memoryUsage().arrayBuffers
    case 'end':
      return process.disconnect?.()
    case 'exit':
      return process.exit(command.code)
    case 'throw':
    default:
      throw new Error('crash')
  }
}

function logFields({ level, fields, message }: Command & { act: 'fields' }): void {
  const { [level]: method } = logger as unknown as Record<string, pino.LogFn>
  method?.call(logger, fields, message)
}

async function log({ from, to, turns = 0, pad = 0 }: Command & { act: 'log' }): Promise<number> {
  const startedAtMs = performance.now()
  const value = 'x'.repeat(pad)
  for (let i = from; i < to; i += 1) {
    if (pad > 0) logger.info({ pad: value }, `m-${i}`)
    else logger.info(`m-${i}`)
    if (turns > 0 && i % turns === 0) await setImmediate()
  }
  return performance.now() - startedAtMs
}

process.on('message', (command: Command) => {
  void run(command).then((result) => process.connected && process.send?.({ result }))
})
