import { contractLimits } from '../limits.ts'
import { LimitError } from './limit-error.ts'

const PATH = '/metadata'
/** `metadata` itself is level 1, so an object in it has level 2. */
const MEMBER_LEVEL = 2

/**
 * Converts the values of one entry into values that JSON can hold. The rules are in the README.
 *
 * Stops at the limits of metadata, so that a large graph of objects costs no more than a valid one.
 */
export class PlainValues {
  /** A lower bound of the size of the metadata as JSON. */
  #bytesMin = 0
  /** The objects that contain the current one. */
  readonly #ancestors: object[] = []
  /** The error whose stack trace is the `stack` of the entry. It is not repeated in the metadata. */
  #main: Error | undefined
  readonly #reducesErrors: boolean
  #hasErrors = false

  /** @param reducesErrors whether errors have no properties of their own, except their code */
  constructor(reducesErrors = false) {
    this.#reducesErrors = reducesErrors
  }

  /**
   * Converts a member of the metadata.
   *
   * @param main the error whose stack trace is the `stack` of the entry
   * @throws LimitError
   */
  convert(value: unknown, name: string, main?: Error): unknown {
    this.#main = main
    try {
      return this.#convert(value, name, MEMBER_LEVEL)
    } catch (error) {
      if (error instanceof LimitError) error.mayReduceErrors = this.#hasErrors && !this.#reducesErrors
      throw error
    }
  }

  /** @param level the level of the value, if it is an object or an array */
  #convert(value: unknown, name: string, level: number): unknown {
    if (typeof value === 'bigint') return this.#convert(digits(value), name, level)
    if (typeof value === 'object' && value !== null) return this.#convertObject(value, name, level, true)
    this.#count(typeof value === 'string' ? value.length + 2 : 1)
    // JSON.stringify leaves them out. It would call a function with the name toJSON.
    return typeof value === 'function' || typeof value === 'symbol' ? undefined : value
  }

  /** @throws LimitError */
  copy(value: object, level: number): Record<string, unknown> {
    const copy = emptyObject()
    for (const name in value) {
      // Own members come first.
      if (!Object.hasOwn(value, name)) break
      this.#count(name.length + 4)
      copy[name] = this.#convertMember(value, name, level + 1)
    }
    return copy
  }

  #count(bytes: number): void {
    this.#bytesMin += bytes
    if (this.#bytesMin > contractLimits.metadataBytesMax) throw tooLarge()
  }

  #convertObject(value: object, name: string, level: number, honoursToJson: boolean): unknown {
    if (this.#ancestors.includes(value)) return '[Circular]'
    this.#ancestors.push(value)
    try {
      return this.#convertKind(value, name, level, honoursToJson)
    } catch (error) {
      if (error instanceof LimitError) throw error
      // From a getter, a proxy or a toJSON of the application.
      return describeThrown(error)
    } finally {
      this.#ancestors.pop()
    }
  }

  #convertKind(value: object, name: string, level: number, honoursToJson: boolean): unknown {
    // Before toJSON: that of a Buffer makes an array of all its bytes.
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
      return this.#convert(`[${value.constructor.name}: ${value.byteLength} bytes]`, name, level)
    if (honoursToJson && !isError(value) && 'toJSON' in value && typeof value.toJSON === 'function') {
      const replaced: unknown = value.toJSON(name)
      return typeof replaced === 'object' && replaced !== null && replaced !== value
        ? this.#convertObject(replaced, name, level, false)
        : replaced === value
          ? this.copy(value, level)
          : this.#convert(replaced, name, level)
    }
    if (value instanceof RegExp) return this.#convert(String(value), name, level)
    if (isBoxed(value)) return this.#convert(value.valueOf(), name, level)
    this.#count(2)
    if (level > contractLimits.metadataDepthMax) throw tooDeep()
    if (isError(value)) return this.#convertError(value, level)
    if (Array.isArray(value) || value instanceof Set)
      return Array.from(value, (item: unknown, i) => this.#convert(item, String(i), level + 1))
    return value instanceof Map ? this.#copyMap(value, level) : this.copy(value, level)
  }

  /** The name, message, stack and own properties of an error, and its cause. */
  #convertError(error: Error, level: number): Record<string, unknown> {
    this.#hasErrors = true
    const converted = this.#reducesErrors ? emptyObject() : this.copy(error, level)
    const last = this.#reducesErrors ? 'code' : 'errors'
    const names = ['name', 'message', ...(error === this.#main ? [] : ['stack']), 'cause', last] as const
    for (const name of names) {
      if (!Object.hasOwn(converted, name) && name in error)
        converted[name] = this.#convertMember(error, name, level + 1)
    }
    return converted
  }

  #convertMember(value: object, name: string, level: number): unknown {
    let member: unknown
    try {
      member = (value as Record<string, unknown>)[name]
    } catch (error) {
      return describeThrown(error)
    }
    return this.#convert(member, name, level)
  }

  #copyMap(map: ReadonlyMap<unknown, unknown>, level: number): Record<string, unknown> {
    const copy = emptyObject()
    for (const [key, member] of map) {
      const name = String(key)
      this.#count(name.length + 4)
      copy[name] = this.#convert(member, name, level + 1)
    }
    return copy
  }
}

/** Never throws. */
export function isError(value: unknown): value is Error {
  if (typeof value !== 'object' || value === null) return false
  try {
    // Errors of another realm, such as a vm, are not instances of this realm's class.
    return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]'
  } catch {
    // A proxy that was revoked.
    return false
  }
}

/** More digits than metadata can have. The conversion of a larger number would take long. */
const BIGINT_MAX = 1n << 220_000n

function digits(value: bigint): string {
  if (value > BIGINT_MAX || value < -BIGINT_MAX) throw tooLarge()
  return String(value)
}

/** Whether a value is what `new String('')` and the like return. */
function isBoxed(value: object): boolean {
  return /^\[object (Boolean|Number|String)\]$/.test(Object.prototype.toString.call(value))
}

/** Without a prototype: an assignment to `__proto__` creates a member like any other. */
function emptyObject(): Record<string, unknown> {
  return Object.create(null) as Record<string, unknown>
}

export function describeThrown(error: unknown): string {
  try {
    return `[Threw: ${error instanceof Error ? error.message : String(error)}]`
  } catch {
    return '[Threw]'
  }
}

export function tooLarge(): LimitError {
  const message = `must have at most ${contractLimits.metadataBytesMax} bytes as JSON`
  return new LimitError(PATH, 'too_large', message)
}

export function tooManyNames(): LimitError {
  return new LimitError(PATH, 'too_many_names', `must have at most ${contractLimits.metadataNamesMax} names`)
}

function tooDeep(): LimitError {
  return new LimitError(PATH, 'too_deep', `must have at most ${contractLimits.metadataDepthMax} levels`)
}
