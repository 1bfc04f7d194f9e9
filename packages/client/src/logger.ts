import { LimitError, splitEntry, toEntryError } from './encode.ts'
import type { Entry, EntryError, Level, Metadata } from './entry.ts'
import { copyFields, isError, plainMetadata } from './metadata.ts'
import type { EntryDefaults } from './options.ts'

/** Where a logger sends its entries. */
export interface EntryIntake {
  /** @throws LimitError if the entry cannot be stored */
  add(entry: Entry, tag: unknown): void
  reject(entry: unknown, error: EntryError, tag: unknown): void
  /** The current time, as a timestamp. */
  timestamp(): string
}

/** Makes entries from messages and fields. No method of it throws or waits. */
export class Logger {
  readonly #intake: EntryIntake
  readonly #defaults: EntryDefaults
  readonly #context: Metadata

  constructor(intake: EntryIntake, defaults: EntryDefaults, context: Metadata) {
    this.#intake = intake
    this.#defaults = defaults
    this.#context = context
  }

  log(message: string | Error, fields?: object): void {
    this.#write('log', message, fields)
  }

  debug(message: string | Error, fields?: object): void {
    this.#write('debug', message, fields)
  }

  info(message: string | Error, fields?: object): void {
    this.#write('info', message, fields)
  }

  success(message: string | Error, fields?: object): void {
    this.#write('success', message, fields)
  }

  warn(message: string | Error, fields?: object): void {
    this.#write('warn', message, fields)
  }

  error(message: string | Error, fields?: object): void {
    this.#write('error', message, fields)
  }

  /**
   * Sends an entry with all its fields. The logger adds its context, its defaults and the time.
   *
   * @param tag any value: hooks get it with the entry
   */
  send(entry: Entry, tag?: unknown): void {
    try {
      const { fields, others } = splitEntry(entry)
      const context = others === undefined ? this.#context : { ...this.#context, ...others }
      this.#add(context, entry.metadata, undefined, fields, tag)
    } catch (error) {
      this.#intake.reject(entry, toEntryError(error), tag)
    }
  }

  /**
   * A logger that adds `context` to the metadata of its entries.
   *
   * @param defaults replaces those of this logger
   */
  child(context: object, defaults: EntryDefaults = {}): Logger {
    const merged = { ...this.#context, ...copyFields(context) }
    return new Logger(this.#intake, { ...this.#defaults, ...defaults }, merged)
  }

  #write(level: Level, message: string | Error, fields: object | undefined): void {
    try {
      const error = isError(message) ? message : undefined
      const text = error === undefined ? String(message) : error.message || error.name
      this.#add(this.#context, fields, error, { level, message: text }, undefined)
    } catch (error) {
      this.#intake.reject({ level, message, metadata: fields }, toEntryError(error), undefined)
    }
  }

  #add(context: Metadata, given: unknown, error: Error | undefined, fields: Entry, tag: unknown): void {
    const timestamp = this.#intake.timestamp()
    const add = (reducesErrors: boolean): void => {
      const { metadata, stack } = plainMetadata(context, given, error, reducesErrors)
      this.#intake.add({ timestamp, ...this.#defaults, stack, ...fields, metadata }, tag)
    }
    try {
      add(false)
    } catch (limit) {
      if (!(limit instanceof LimitError) || !limit.mayReduceErrors) throw limit
      // Errors of HTTP clients have the request, its configuration and sockets as properties. Rather without them than not at all.
      add(true)
    }
  }
}
