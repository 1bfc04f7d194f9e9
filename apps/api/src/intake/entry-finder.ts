import { describeFault, type JsonObserver, JsonScanner } from '@sluice/rows'
import { limits } from '@sluice/schema'
import { Problem, problems } from '../problems.ts'
import { EntryTracker, type FoundEntry, isName } from './entry-tracker.ts'
import { InvalidLine } from './invalid-line.ts'

/** The content of a body: one entry, or a batch of values that may be entries; or an OTLP request, whose records are found in another way. */
export interface FoundEntries {
  readonly kind: 'entry' | 'batch' | 'otlp'
  readonly entries: readonly (FoundEntry | InvalidLine)[]
}

/** Finds the entries of a body, in steps. */
export interface EntryFinder {
  /**
   * Scans at most this number of bytes.
   *
   * @returns undefined if this was not the last step
   * @throws Problem `invalid_json`, `invalid_body`, `too_many_entries`
   */
  step(bytesMax: number): FoundEntries | undefined
}

const LOGS = Buffer.from('logs')
const RESOURCE_LOGS = Buffer.from('resourceLogs')
/** The depth of the entries, where values are not entries. */
const NOWHERE = -2
const entriesMax = limits.entriesPerRequestMax

/**
 * Finds the entries of a JSON body: the body itself, the elements of an array, or those of "logs". Recognizes OTLP requests. Duplicates are resolved as by
 * JSON.parse: the last "logs" counts.
 */
export class JsonEntryFinder implements EntryFinder, JsonObserver {
  /** The members of the entries in "logs". */
  readonly depthMax = 3
  readonly #body: Buffer
  readonly #scanner: JsonScanner
  readonly #tracker: EntryTracker
  readonly #entries: FoundEntry[] = []
  #count = 0
  #entryDepth: number = NOWHERE
  #kind: FoundEntries['kind'] | undefined
  /** Whether the name before the next value is "logs". */
  #isAtLogs = false
  #hasLogs = false
  #hasResourceLogs = false

  constructor(body: Buffer) {
    this.#body = body
    this.#scanner = new JsonScanner(body, 0, body.length, this)
    this.#tracker = new EntryTracker(body)
  }

  step(bytesMax: number): FoundEntries | undefined {
    this.#scanner.scan(bytesMax)
    if (!this.#scanner.isDone) return undefined
    if (this.#scanner.isInvalid) throw new Problem('invalid_json', sentence(this.#fault()))
    if (this.#kind === undefined) {
      const detail = this.#hasLogs
        ? problems.invalid_body.detail
        : 'Send an entry object, {"logs": [entries]} or an array of entries.'
      throw new Problem('invalid_body', detail)
    }
    if (this.#count > entriesMax) {
      const detail = `A request may have at most ${entriesMax} entries; this one has ${this.#count}.`
      throw new Problem('too_many_entries', detail)
    }
    // An entry may have an unknown field with the name.
    if (this.#kind === 'entry' && this.#hasResourceLogs && !this.#hasLogs && !this.#tracker.isLikeEntry)
      return { kind: 'otlp', entries: [] }
    return { kind: this.#kind, entries: this.#entries }
  }

  beginValue(at: number, byte: number, depth: number, waste: number): void {
    if (depth === 0) {
      this.#kind = byte === OPEN_BRACE ? 'entry' : byte === OPEN_BRACKET ? 'batch' : undefined
      this.#entryDepth = byte === OPEN_BRACE ? 0 : byte === OPEN_BRACKET ? 1 : NOWHERE
    } else if (this.#isAtLogs) {
      this.#isAtLogs = false
      this.#kind = byte === OPEN_BRACKET ? 'batch' : undefined
      this.#entryDepth = byte === OPEN_BRACKET ? 2 : NOWHERE
    }
    if (depth === this.#entryDepth) {
      this.#scanner.takeDeepest()
      this.#tracker.begin(at, byte, waste)
    } else if (depth === this.#entryDepth + 1) this.#tracker.beginMember(at, byte, waste)
  }

  name(start: number, end: number, depth: number): void {
    if (depth === 1 && isName(this.#body, start, end, LOGS)) {
      this.#isAtLogs = true
      this.#hasLogs = true
      this.#entryDepth = NOWHERE
      this.#entries.length = 0
      this.#count = 0
    } else if (depth === this.#entryDepth + 1) {
      if (depth === 1 && isName(this.#body, start, end, RESOURCE_LOGS)) this.#hasResourceLogs = true
      this.#tracker.name(start, end)
    }
  }

  endValue(end: number, depth: number, waste: number): void {
    if (depth === this.#entryDepth) {
      this.#count += 1
      if (this.#count <= entriesMax) this.#entries.push(this.#tracker.end(end, waste, this.#scanner))
    } else if (depth === this.#entryDepth + 1)
      this.#tracker.endMember(end, waste, this.#scanner.takeDeepest() - depth)
    // The end of "logs".
    else if (depth === 1 && this.#entryDepth === 2) this.#entryDepth = NOWHERE
  }

  #fault(): string {
    return describeFault(this.#body, 0, this.#body.length, this.#scanner)
  }
}

/** Makes a sentence of the description of a fault. */
function sentence(fault: string): string {
  return `${fault.charAt(0).toUpperCase()}${fault.slice(1)}.`
}

const OPEN_BRACKET = 0x5b
const OPEN_BRACE = 0x7b
