import type { Delivery } from './delivery.ts'
import { encodeEntry, LimitError, splitEntry, toEntryError } from './encode.ts'
import type { Entry, Level, Metadata } from './entry.ts'
import { copyFields, isError, plainMetadata } from './metadata.ts'
import type { EntryDefaults } from './options.ts'

/** Makes entries from messages and fields. No method of it throws or waits. */
export class Logger {
  readonly #delivery: Delivery
  readonly #defaults: EntryDefaults
  readonly #context: Metadata

  constructor(delivery: Delivery, defaults: EntryDefaults, context: Metadata) {
    this.#delivery = delivery
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

  /** Sends an entry with all its fields. The logger adds its context, its defaults and the time. */
  send(entry: Entry, tag?: unknown): void {
    try {
      const { fields, others } = splitEntry(entry)
      const context = others === undefined ? this.#context : { ...this.#context, ...others }
      this.#add(context, entry.metadata, undefined, fields, tag)
    } catch (error) {
      this.#delivery.reject(entry, toEntryError(error), tag)
    }
  }

  /** A logger that adds `context` to the metadata of its entries, and whose defaults replace those of this one. */
  child(context: object, defaults: EntryDefaults = {}): Logger {
    const merged = { ...this.#context, ...copyFields(context) }
    return new Logger(this.#delivery, { ...this.#defaults, ...defaults }, merged)
  }

  #write(level: Level, message: string | Error, fields: object | undefined): void {
    try {
      const error = isError(message) ? message : undefined
      const string = error === undefined ? String(message) : error.message || error.name
      this.#add(this.#context, fields, error, { level, message: string }, undefined)
    } catch (error) {
      this.#delivery.reject({ level, message, metadata: fields }, toEntryError(error), undefined)
    }
  }

  #add(context: Metadata, given: unknown, error: Error | undefined, fields: Entry, tag: unknown): void {
    const timestamp = this.#delivery.timestamp()
    const add = (reducesErrors: boolean): void => {
      const { metadata, stack } = plainMetadata(context, given, error, reducesErrors)
      this.#delivery.add(encodeEntry({ timestamp, ...this.#defaults, stack, ...fields, metadata }), tag)
    }
    try {
      add(false)
    } catch (limit) {
      if (!(limit instanceof LimitError)) throw limit
      // Errors of HTTP clients have the request, its configuration and sockets as properties. Rather without them than not at all.
      add(true)
    }
  }
}
