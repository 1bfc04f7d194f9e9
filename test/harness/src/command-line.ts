import { parseArgs, type ParseArgsOptionsConfig } from 'node:util'

/** The command line of a tool. Exits the process when the options are invalid, or help is requested. */
export class CommandLine {
  readonly #usage: string

  constructor(usage: string) {
    this.#usage = usage
  }

  read<const T extends ParseArgsOptionsConfig>(options: T) {
    try {
      const help = { type: 'boolean', short: 'h', default: false } as const
      const { values } = parseArgs({ options: { ...options, help } })
      if ('help' in values && values.help === true) this.#exit(this.#usage, 0)
      return values
    } catch (error) {
      return this.fail((error as Error).message)
    }
  }

  positive(option: string, given: string): number {
    const value = Number(given)
    const isPositive = Number.isFinite(value) && value > 0
    return isPositive ? value : this.fail(`--${option} must be a number greater than 0`)
  }

  nonNegativeInteger(option: string, given: string): number {
    const value = Number(given)
    const isValid = Number.isSafeInteger(value) && value >= 0
    return isValid ? value : this.fail(`--${option} must be a non-negative integer`)
  }

  fail(reason: string): never {
    this.#exit(`${reason}\n\n${this.#usage}`, 1)
  }

  #exit(text: string, status: number): never {
    process.stderr.write(`${text}\n`)
    process.exit(status)
  }
}

export function randomSeed(): string {
  return String(Math.floor(Math.random() * 1_000_000))
}
