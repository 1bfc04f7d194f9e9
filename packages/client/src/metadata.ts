import { limits } from '@sluice/schema/limits'
import { LimitError, messageOf, metadataTooLarge } from './encode.ts'
import type { Metadata } from './entry.ts'

const { metadataBytesMax, metadataDepthMax, metadataNamesMax } = limits
/** 256 of them, the most that an entry may have, are 1 MB. */
const SHORT_CHARACTERS_MAX = 4_096

/**
 * Merges the context of a logger with the fields of a call. Fields win.
 *
 * @param error becomes the field `error`, unless there is one
 * @param reducesErrors whether errors have no properties of their own, except their code
 * @returns metadata that JSON can hold, and the stack trace of the first error
 * @throws LimitError
 */
export function plainMetadata(
  context: Metadata,
  fields: unknown,
  error: Error | undefined,
  reducesErrors = false,
): { readonly metadata: Metadata | undefined; readonly stack: string | undefined } {
  const metadata: Metadata = { ...context }
  if (error !== undefined) metadata['error'] = error
  addFields(metadata, fields)
  let main = error
  let values: PlainValues | undefined
  const names = Object.keys(metadata)
  if (names.length === 0) return { metadata: undefined, stack: undefined }
  let nameCharacters = 0
  for (const name of names) {
    nameCharacters += name.length
    if (nameCharacters > metadataBytesMax) throw metadataTooLarge()
    const value = metadata[name]
    // The usual case needs no converter: a few short strings and numbers.
    if (isShort(value)) continue
    if (main === undefined && isError(value)) main = value
    values ??= new PlainValues(reducesErrors)
    metadata[name] = values.convert(value, name, main)
  }
  const stack = main && readMember(main, 'stack')
  return { metadata, stack: typeof stack === 'string' ? stack : undefined }
}

function isShort(value: unknown): boolean {
  if (typeof value === 'string') return value.length <= SHORT_CHARACTERS_MAX
  return typeof value === 'number' || typeof value === 'boolean' || value === undefined || value === null
}

/** A copy of the own members of an object. Never throws. */
export function copyFields(fields: object): Metadata {
  const copy: Metadata = {}
  addFields(copy, fields)
  return copy
}

/** Adds what a nested value of this kind would have as members, up to one more than an entry may have: it is rejected then. Never throws. */
function addFields(target: Metadata, fields: unknown): void {
  if (fields === undefined || fields === null) return
  if (isError(fields)) return setMember(target, 'error', fields)
  try {
    const source = callToJson(fields, '')
    // A caller without types may pass anything. The members of a string would be its characters.
    if ((typeof source !== 'object' && typeof source !== 'function') || source === null)
      return setMember(target, 'fields', source)
    let left = metadataNamesMax
    visitMembers(source, (name, value) => {
      setMember(target, name, value)
      if (value !== undefined) left -= 1
      return left >= 0
    })
  } catch (error) {
    target['fields'] = describeThrown(error)
  }
}

/**
 * Visits the entries of a map or the own members of an object, until a visit returns false. A loop over the names of an object with a million
 * members costs a tenth of a copy.
 */
function visitMembers(source: object, visit: (name: string, value: unknown) => boolean): void {
  if (source instanceof Map) {
    for (const [key, value] of source) if (!visit(String(key), value)) return
    return
  }
  for (const name in source) {
    // Own members come first.
    if (!Object.hasOwn(source, name) || !visit(name, readMember(source, name))) return
  }
}

function setMember(target: Metadata, name: string, value: unknown): void {
  // An assignment to it would set the prototype.
  if (name === '__proto__')
    Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true })
  else target[name] = value
}

function readMember(source: object, name: string): unknown {
  try {
    return (source as Metadata)[name]
  } catch (error) {
    return describeThrown(error)
  }
}

/** What JSON.stringify takes in place of the value. */
function callToJson(value: object, name: string): unknown {
  const { toJSON } = value as { readonly toJSON?: unknown }
  return typeof toJSON === 'function' ? Reflect.apply(toJSON, value, [name]) : value
}

/** More digits than metadata can have. The conversion of a larger number would take long. */
const BIGINT_MAX = 1n << 220_000n
/** `metadata` itself is level 1, so an object in it has level 2. */
const MEMBER_LEVEL = 2

/**
 * Converts the values of one entry into values that JSON can hold. The rules are in the README.
 *
 * Stops at the limits of metadata, so that a large graph of objects costs no more than a valid one.
 */
class PlainValues {
  /** A lower bound of the size of the metadata as JSON. */
  #bytesMin = 0
  /** The objects that contain the current one. */
  readonly #ancestors: object[] = []
  /** The error whose stack trace is the `stack` of the entry. It is not repeated in the metadata. */
  #main: Error | undefined
  readonly #reducesErrors: boolean

  constructor(reducesErrors: boolean) {
    this.#reducesErrors = reducesErrors
  }

  /** @throws LimitError */
  convert(value: unknown, name: string, main: Error | undefined): unknown {
    this.#main = main
    return this.#convert(value, name, MEMBER_LEVEL)
  }

  /** @param level the level of the value, if it is an object or an array */
  #convert(value: unknown, name: string, level: number, honoursToJson = true): unknown {
    if (typeof value === 'bigint') {
      if (value > BIGINT_MAX || value < -BIGINT_MAX) throw metadataTooLarge()
      return this.#convert(String(value), name, level)
    }
    if (typeof value === 'object' && value !== null)
      return this.#convertObject(value, name, level, honoursToJson)
    this.#count(typeof value === 'string' ? value.length + 2 : 1)
    // JSON.stringify leaves them out. It would call a function with the name toJSON.
    return typeof value === 'function' || typeof value === 'symbol' ? undefined : value
  }

  #count(bytes: number): void {
    this.#bytesMin += bytes
    if (this.#bytesMin > metadataBytesMax) throw metadataTooLarge()
  }

  #convertObject(value: object, name: string, level: number, honoursToJson: boolean): unknown {
    if (this.#ancestors.includes(value)) return '[Circular]'
    this.#ancestors.push(value)
    try {
      // Before toJSON, which would make an array of all bytes of a Buffer.
      if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
        return this.#convert(`[${value.constructor.name}: ${value.byteLength} bytes]`, name, level)
      const replaced = honoursToJson && !isError(value) ? callToJson(value, name) : value
      if (replaced !== value) return this.#convert(replaced, name, level, false)
      if (value instanceof RegExp) return this.#convert(String(value), name, level)
      if (/^\[object (Boolean|Number|String)\]$/.test(Object.prototype.toString.call(value)))
        return this.#convert(value.valueOf(), name, level)
      this.#count(2)
      if (level > metadataDepthMax)
        throw new LimitError('/metadata', 'too_deep', `must have at most ${metadataDepthMax} levels`)
      if (isError(value)) return this.#convertError(value, level)
      if (Array.isArray(value) || value instanceof Set)
        return Array.from(value, (item: unknown, i) => this.#convert(item, String(i), level + 1))
      return this.#convertMembers(value, level)
    } catch (error) {
      if (error instanceof LimitError) throw error
      // From a getter, a proxy or a toJSON of the application.
      return describeThrown(error)
    } finally {
      this.#ancestors.pop()
    }
  }

  /** The name, message, stack and own properties of an error, and its cause. */
  #convertError(error: Error, level: number): Metadata {
    const converted = this.#reducesErrors ? {} : this.#convertMembers(error, level)
    const last = this.#reducesErrors ? 'code' : 'errors'
    for (const name of ['name', 'message', 'stack', 'cause', last]) {
      if (name === 'stack' && error === this.#main) continue
      if (!Object.hasOwn(converted, name) && name in error)
        converted[name] = this.#convert(readMember(error, name), name, level + 1)
    }
    return converted
  }

  #convertMembers(source: object, level: number): Metadata {
    const copy: Metadata = {}
    visitMembers(source, (name, value) => {
      this.#count(name.length + 4)
      setMember(copy, name, this.#convert(value, name, level + 1))
      return true
    })
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

function describeThrown(error: unknown): string {
  return `[Threw: ${messageOf(error)}]`
}
