import { parseArgs, type ParseArgsOptionsConfig } from 'node:util'

/** The command line of a tool that is run by itself. Ends the process where it is wrong, or help is asked for. */
export class CommandLine {
  readonly #usage: string

  constructor(usage: string) {
    this.#usage = usage
  }

  /** The values of the options that are given, and of `--help`. */
  read<const T extends ParseArgsOptionsConfig>(options: T) {
    try {
      const help = { type: 'boolean', short: 'h', default: false } as const
      const { values } = parseArgs({ options: { ...options, help } })
      if ('help' in values && values.help === true) this.#leave(this.#usage, 0)
      return values
    } catch (error) {
      return this.refuse((error as Error).message)
    }
  }

  refuse(reason: string): never {
    this.#leave(`${reason}\n\n${this.#usage}`, 1)
  }

  #leave(text: string, status: number): never {
    process.stderr.write(`${text}\n`)
    process.exit(status)
  }
}

/** For a tool that is not told which. */
export function anySeed(): string {
  return String(Math.floor(Math.random() * 1_000_000))
}
