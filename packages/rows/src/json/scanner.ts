import { events, FIRST_EVENT, type State, states, transitions } from './grammar.ts'

/**
 * Is told of the outermost values of a text while it is scanned. `depth` is the number of arrays and objects that are open around the
 * value. `waste` is the number of bytes before a place that the shortest form of the text may not have: whitespace, and all but one
 * byte of each escape and of each number with a fraction or an exponent (`0.10000000000000001` is `0.1`, and `-0` is `0`).
 */
export interface JsonObserver {
  /** Values and names at a greater depth are not reported. */
  readonly depthMax: number
  /** A value begins. @param byte its first byte */
  beginValue(at: number, byte: number, depth: number, waste: number): void
  /** A name of an object. @param start the place of its opening quote @param end the place after its closing quote */
  name(start: number, end: number, depth: number): void
  /** A value ends. @param end the place after its last byte */
  endValue(end: number, depth: number, waste: number): void
}

const unobserved: JsonObserver = { depthMax: -1, beginValue: () => {}, name: () => {}, endValue: () => {} }

/** From this number of digits on, an integer may be beyond 2^53. */
const INEXACT_DIGITS = 16

/**
 * Checks that bytes are JSON, as strictly as JSON.parse, without a string or an object per value and without recursion. The work can be
 * divided into steps of any size: between two steps, other requests are served.
 *
 * Scanning (`at` is the place of the next byte) → invalid (`at` is the place of the first wrong byte, or the end of an incomplete
 * text), or valid. Both are final.
 */
export class JsonScanner {
  readonly #bytes: Uint8Array
  readonly #end: number
  readonly #observer: JsonObserver
  #at: number
  #state: number = states.value
  #isInvalid = false
  #isFinished = false
  #isName = false
  #tokenStart = 0
  #depth = 0
  #waste = 0
  /** For each depth above 0: 1 if the value that is open there is an object, 0 for an array. */
  #isObject = new Uint8Array(64)
  #escapedNameAt = -1
  #inexactNumberAt = -1
  #deepest = 0

  /** @param bytes UTF-8 @param start the first byte of the text @param end the place after its last byte */
  constructor(bytes: Uint8Array, start = 0, end = bytes.length, observer: JsonObserver = unobserved) {
    this.#bytes = bytes
    this.#at = start
    this.#end = end
    this.#observer = observer
  }

  get at(): number {
    return this.#at
  }

  /** Where in the grammar the place `at` is. */
  get state(): State {
    return this.#state as State
  }

  get isInvalid(): boolean {
    return this.#isInvalid
  }

  get isDone(): boolean {
    return this.#isInvalid || this.#isFinished
  }

  /** The last place of an escape in a name; -1 if there is none. */
  get escapedNameAt(): number {
    return this.#escapedNameAt
  }

  /** The last place in a number that JavaScript may be unable to represent exactly; -1 if there is none. */
  get inexactNumberAt(): number {
    return this.#inexactNumberAt
  }

  /** Returns how deep values were nested since the last call. */
  takeDeepest(): number {
    const deepest = this.#deepest
    this.#deepest = 0
    return deepest
  }

  /** Scans at most this number of bytes. */
  scan(bytesMax: number): void {
    if (this.isDone) return
    const end = Math.min(this.#end, this.#at + bytesMax)
    this.#scanTo(end)
    if (end === this.#end && !this.#isInvalid) this.#finish()
  }

  #scanTo(end: number): void {
    const bytes = this.#bytes
    const observer = this.#observer
    const { depthMax } = observer
    // In variables, because fields would double the time.
    let at = this.#at
    let state = this.#state
    let isName = this.#isName
    let tokenStart = this.#tokenStart
    let depth = this.#depth
    let waste = this.#waste
    let isObject = this.#isObject
    while (at < end) {
      if (state === states.string) {
        at = plainEnd(bytes, at, end)
        if (at === end) break
      }
      const byte = bytes[at] ?? 0
      const next = transitions[(state << 8) | byte] ?? events.invalid
      if (next < FIRST_EVENT) {
        state = next
        at += 1
        continue
      }
      switch (next) {
        case events.blank:
          waste += 1
          break
        case events.beginNumber:
          tokenStart = at
          if (depth <= depthMax) observer.beginValue(at, byte, depth, waste)
          state = byte === MINUS ? states.minus : byte === ZERO ? states.zero : states.integer
          break
        case events.endNumber:
          if (state === states.integer && at - tokenStart >= INEXACT_DIGITS)
            this.#inexactNumberAt = tokenStart
          if (state !== states.integer) waste += at - tokenStart - 1
          if (depth <= depthMax) observer.endValue(at, depth, waste)
          state = stateAfter(depth, isObject)
          // This byte is not part of the number.
          continue
        case events.beginName:
          isName = true
          tokenStart = at
          state = states.string
          break
        case events.beginString:
          isName = false
          if (depth <= depthMax) observer.beginValue(at, byte, depth, waste)
          state = states.string
          break
        case events.backslash:
          waste += 1
          if (isName) this.#escapedNameAt = at
          state = states.escape
          break
        case events.unicodeEscape:
          waste += 4
          state = states.hex1
          break
        case events.endString:
          if (isName) {
            if (depth <= depthMax) observer.name(tokenStart, at + 1, depth)
            state = states.colon
          } else {
            if (depth <= depthMax) observer.endValue(at + 1, depth, waste)
            state = stateAfter(depth, isObject)
          }
          break
        case events.openObject:
        case events.openArray:
          if (depth <= depthMax) observer.beginValue(at, byte, depth, waste)
          depth += 1
          if (depth === isObject.length) isObject = this.#deepen()
          isObject[depth] = next === events.openObject ? 1 : 0
          if (depth > this.#deepest) this.#deepest = depth
          state = next === events.openObject ? states.nameOrEnd : states.elementOrEnd
          break
        case events.close:
          depth -= 1
          if (depth <= depthMax) observer.endValue(at + 1, depth, waste)
          state = stateAfter(depth, isObject)
          break
        case events.point:
          if (at - tokenStart >= INEXACT_DIGITS) this.#inexactNumberAt = tokenStart
          state = states.point
          break
        case events.beginExponent:
          this.#inexactNumberAt = tokenStart
          state = states.exponent
          break
        case events.beginLiteral:
          if (depth <= depthMax) observer.beginValue(at, byte, depth, waste)
          state = byte === LOWER_T ? states.t : byte === LOWER_F ? states.f : states.n
          break
        case events.endLiteral:
          if (depth <= depthMax) observer.endValue(at + 1, depth, waste)
          state = stateAfter(depth, isObject)
          break
        default:
          this.#isInvalid = true
          this.#at = at
          this.#state = state
          return
      }
      at += 1
    }
    this.#at = at
    this.#state = state
    this.#isName = isName
    this.#tokenStart = tokenStart
    this.#depth = depth
    this.#waste = waste
  }

  #deepen(): Uint8Array<ArrayBuffer> {
    const deeper = new Uint8Array(2 * this.#isObject.length)
    deeper.set(this.#isObject)
    this.#isObject = deeper
    return deeper
  }

  /** The end of the text also ends a number. */
  #finish(): void {
    this.#isFinished = true
    const isNumber = transitions[(this.#state << 8) | SPACE] === events.endNumber
    if (isNumber && this.#depth === 0) {
      if (this.#state === states.integer && this.#at - this.#tokenStart >= INEXACT_DIGITS)
        this.#inexactNumberAt = this.#tokenStart
      if (this.#observer.depthMax >= 0) this.#observer.endValue(this.#at, 0, this.#waste)
      this.#state = states.end
    }
    this.#isInvalid = this.#state !== states.end
  }
}

/** The end of the part of a string that needs no attention. */
function plainEnd(bytes: Uint8Array, from: number, end: number): number {
  let at = from
  while (at < end) {
    const byte = bytes[at] ?? 0
    if (byte < SPACE || byte === QUOTE || byte === BACKSLASH) break
    at += 1
  }
  return at
}

function stateAfter(depth: number, isObject: Uint8Array): State {
  if (depth === 0) return states.end
  return isObject[depth] === 1 ? states.afterMember : states.afterElement
}

const SPACE = 0x20
const QUOTE = 0x22
const MINUS = 0x2d
const ZERO = 0x30
const BACKSLASH = 0x5c
const LOWER_F = 0x66
const LOWER_T = 0x74
