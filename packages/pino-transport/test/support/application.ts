// An application that logs with pino, in a process of its own. It does what the messages of its parent say.
import { setImmediate } from 'node:timers/promises'
import { type LoggerOptions, pino } from 'pino'

export interface ApplicationSettings {
  readonly pino?: LoggerOptions
  readonly transport: object
}

export type Command =
  /** Logs `m-<from>` to `m-<to - 1>`, with other work in between if `turns` is set. */
  | {
      readonly act: 'log'
      readonly from: number
      readonly to: number
      readonly turns?: number
      readonly pad?: number
    }
  | { readonly act: 'fields'; readonly level: string; readonly fields: object; readonly message?: string }
  | { readonly act: 'error'; readonly message: string }
  | { readonly act: 'flush' }
  /** Returns the bytes of lines that pino has not passed to the transport. */
  | { readonly act: 'memory' }
  /** Has nothing else to do. */
  | { readonly act: 'end' }
  | { readonly act: 'exit'; readonly code: number }
  | { readonly act: 'throw' }

const settings = JSON.parse(process.argv[2] ?? '') as ApplicationSettings
const logger = pino({
  ...settings.pino,
  transport: settings.transport as LoggerOptions['transport'] & object,
})

async function run(command: Command): Promise<number | undefined> {
  switch (command.act) {
    case 'log':
      return log(command)
    case 'fields':
      logFields(command)
      break
    case 'error':
      logger.error(new TypeError(command.message))
      break
    case 'flush':
      await new Promise<void>((resolve) => logger.flush(() => resolve()))
      break
    case 'memory':
      return process.memoryUsage().arrayBuffers
    case 'end':
      process.disconnect?.()
      break
    case 'exit':
      return process.exit(command.code)
    case 'throw':
      throw new Error('crash')
  }
  return undefined
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
