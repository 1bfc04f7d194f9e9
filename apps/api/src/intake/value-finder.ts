import { describeFault, type JsonObserver, JsonScanner, parseChecked } from '@sluice/rows'
import { type EntryError, limits } from '@sluice/schema'
import { Problem } from '../problems.ts'
import { isName } from './entry-tracker.ts'
import { tooManyRecords } from './records.ts'

/** What to find in a JSON text. A value without a shape is skipped. */
export interface Shape {
  /** Values are found under this tag, if their elements or members are not searched. */
  readonly take?: string
  /** The shape of the elements, if the value is an array. */
  readonly elements?: Shape
  /** The shapes of the members, if the value is an object. Names are ASCII. */
  readonly members?: Readonly<Record<string, Shape>>
  /** An array or an object that is searched is reported under this tag, before what is in it. So is null in its place. */
  readonly group?: string
  /** A value of another type is reported under this tag. */
  readonly other?: string
}

/** A value in a body, and what is known of it before it is parsed. */
export interface FoundValue {
  readonly tag: string
  /** The place of its first byte. */
  readonly start: number
  /** The place after its last byte. For a group or a value of another type, the same as `start`. */
  readonly end: number
  /** Whether it has names or numbers that JSON.parse does not read correctly. */
  readonly isExact: boolean
  /** Why it is not parsed: it is larger than any record of an entry. */
  readonly excess: 'too_large' | 'too_deep' | undefined
}

export const valueBounds = {
  /**
   * Texts are cheap to parse, and a record may have long ones: a message and a stack of 64 Ki characters, with up to 12 bytes for the
   * escapes of each, are rare even in part.
   */
  bytesMax: 1024 * 1024,
  /**
   * Everything but long texts in its shortest form. It becomes metadata, with few exceptions. 64 KiB of short members take 30 ms.
   */
  weightMax: limits.metadataBytesMax + 4 * 1024,
  /** Shorter texts count to the weight. */
  longTextBytesMin: 256,
  /** Levels of values with long texts, such as `{"event": {"error": {"stack": "…"}}}`. */
  longTextDepthMax: 3,
  /** Metadata may have 16 levels. A few more are those around it. */
  levelsMax: limits.metadataDepthMax + 4,
  /** Found values in one text: enough for each record to have one of its own, and a group with two more. */
  foundMax: 4 * limits.recordsPerRequestMax,
} as const

/** Scanning this many bytes takes less than a millisecond. */
export const STEP_BYTES = 64 * 1024

interface NamedShape {
  readonly bytes: Buffer
  readonly shape: Shape
}

/**
 * Finds values in a JSON text without building it, so that each can be parsed alone. Members with the same name are all found.
 *
 * Searching: the shapes of the open arrays and objects are on a stack → inside a found value, until it ends → searching.
 */
export class ValueFinder implements JsonObserver {
  readonly depthMax: number
  readonly #body: Buffer
  readonly #start: number
  readonly #end: number
  readonly #scanner: JsonScanner
  readonly #found: FoundValue[] = []
  /** For each open array or object that is searched. */
  readonly #shapes: { readonly elements: Shape | undefined; readonly members: readonly NamedShape[] }[] = []
  /** The shape of the next value, if it is a member. */
  #next: Shape | undefined
  #rootEnd = -1
  #tag: string | undefined
  /** Of the value that is open now. */
  #valueDepth = 0
  #valueStart = 0
  #valueWaste = 0
  #longTextBytes = 0
  #textStart = -1
  #textWaste = 0

  /** @param start the first byte of the text @param end the place after its last byte */
  constructor(body: Buffer, shape: Shape, start = 0, end = body.length) {
    this.#body = body
    this.#start = start
    this.#end = end
    this.#next = shape
    this.depthMax = depthOf(shape) + valueBounds.longTextDepthMax
    this.#scanner = new JsonScanner(body, start, end, this)
  }

  /** Scans at most this number of bytes. @throws Problem `too_many_entries` */
  scan(bytesMax: number): void {
    this.#scanner.scan(bytesMax)
  }

  get isDone(): boolean {
    return this.#scanner.isDone
  }

  get isInvalid(): boolean {
    return this.#scanner.isInvalid
  }

  /** Why the text is not JSON. */
  get fault(): string {
    const fault = describeFault(this.#body, this.#start, this.#end, this.#scanner)
    return `${fault.charAt(0).toUpperCase()}${fault.slice(1)}.`
  }

  /** The place after the outermost value; -1 before its end is found. What follows may make the text invalid. */
  get rootEnd(): number {
    return this.#rootEnd
  }

  /** The values, in their order. */
  get found(): readonly FoundValue[] {
    return this.#found
  }

  beginValue(at: number, byte: number, depth: number, waste: number): void {
    if (this.#tag !== undefined) {
      if (byte === QUOTE && depth <= this.#valueDepth + valueBounds.longTextDepthMax) {
        this.#textStart = at
        this.#textWaste = waste
      }
      return
    }
    if (depth > this.#shapes.length) return
    const shape = depth === 0 ? this.#next : (this.#shapes[depth - 1]?.elements ?? this.#next)
    this.#next = undefined
    if (shape === undefined) return
    const isArray = byte === OPEN_BRACKET && shape.elements !== undefined
    const isObject = byte === OPEN_BRACE && shape.members !== undefined
    if (isArray || isObject || (byte === LOWER_N && shape.group !== undefined)) {
      if (shape.group !== undefined) this.#add(shape.group, at, at, undefined)
      if (isArray) this.#shapes.push({ elements: shape.elements, members: [] })
      if (isObject) this.#shapes.push({ elements: undefined, members: namesOf(shape.members) })
    } else if (shape.take !== undefined) {
      this.#tag = shape.take
      this.#valueDepth = depth
      this.#valueStart = at
      this.#valueWaste = waste
      this.#longTextBytes = 0
      this.#textStart = byte === QUOTE ? at : -1
      this.#textWaste = waste
      this.#scanner.takeDeepest()
    } else if (shape.other !== undefined) this.#add(shape.other, at, at, undefined)
  }

  name(start: number, end: number, depth: number): void {
    if (this.#tag !== undefined || depth !== this.#shapes.length) return
    this.#next = undefined
    for (const { bytes, shape } of this.#shapes[depth - 1]?.members ?? []) {
      if (isName(this.#body, start, end, bytes)) {
        this.#next = shape
        return
      }
    }
  }

  endValue(end: number, depth: number, waste: number): void {
    if (depth === 0) this.#rootEnd = end
    if (this.#tag === undefined) {
      if (depth < this.#shapes.length) this.#shapes.pop()
      return
    }
    if (this.#textStart >= 0) {
      const bytes = end - this.#textStart - (waste - this.#textWaste)
      if (bytes >= valueBounds.longTextBytesMin) this.#longTextBytes += bytes
      this.#textStart = -1
    }
    if (depth !== this.#valueDepth) return
    const bytes = end - this.#valueStart
    const weight = bytes - (waste - this.#valueWaste) - this.#longTextBytes
    const levels = this.#scanner.takeDeepest() - depth
    const isTooLarge = bytes > valueBounds.bytesMax || weight > valueBounds.weightMax
    const excess = levels > valueBounds.levelsMax ? 'too_deep' : isTooLarge ? 'too_large' : undefined
    this.#add(this.#tag, this.#valueStart, end, excess)
    this.#tag = undefined
  }

  #add(tag: string, start: number, end: number, excess: FoundValue['excess']): void {
    if (this.#found.length === valueBounds.foundMax) throw tooManyRecords()
    const isExact = this.#scanner.escapedNameAt >= start || this.#scanner.inexactNumberAt >= start
    this.#found.push({ tag, start, end, isExact, excess })
  }
}

/**
 * Searches a text in steps.
 *
 * @returns the finder, which has scanned the whole text or the part before its first fault
 * @throws Problem `too_many_entries`
 */
export function* search(
  body: Buffer,
  shape: Shape,
  start = 0,
  end = body.length,
): Generator<undefined, ValueFinder> {
  const finder = new ValueFinder(body, shape, start, end)
  finder.scan(STEP_BYTES)
  while (!finder.isDone) {
    yield undefined
    finder.scan(STEP_BYTES)
  }
  return finder
}

/** Finds the values of a body that is one JSON text, in steps. @throws Problem `invalid_json`, `too_many_entries` */
export function* findValues(body: Buffer, shape: Shape): Generator<undefined, readonly FoundValue[]> {
  const finder = yield* search(body, shape)
  if (finder.isInvalid) throw new Problem('invalid_json', finder.fault)
  return finder.found
}

/** A value of a body, or why it is not parsed. */
export type ParsedValue = { readonly value: unknown } | { readonly error: EntryError }

export function parseFound(body: Buffer, { start, end, isExact, excess }: FoundValue): ParsedValue {
  if (excess !== undefined) return { error: excessErrors[excess] }
  return { value: parseChecked(body.toString('utf8', start, end), isExact) }
}

const excessErrors = {
  too_large: { path: '', code: 'too_large', message: 'has more bytes than a valid entry can have' },
  too_deep: { path: '', code: 'too_deep', message: 'has more levels than a valid entry can have' },
} as const satisfies Record<string, EntryError>

/** The depth of the deepest values that a shape can find. */
function depthOf({ elements, members = {} }: Shape): number {
  const below = [...(elements === undefined ? [] : [elements]), ...Object.values(members)]
  return below.length === 0 ? 0 : 1 + Math.max(...below.map(depthOf))
}

const namesByMembers = new WeakMap<object, readonly NamedShape[]>()

function namesOf(members: Readonly<Record<string, Shape>>): readonly NamedShape[] {
  const known = namesByMembers.get(members)
  if (known !== undefined) return known
  const names = Object.entries(members).map(([name, shape]) => ({ bytes: Buffer.from(name), shape }))
  namesByMembers.set(members, names)
  return names
}

const QUOTE = 0x22
const OPEN_BRACKET = 0x5b
const LOWER_N = 0x6e
const OPEN_BRACE = 0x7b
