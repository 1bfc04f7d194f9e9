import { type JsonObserver, JsonScanner } from '@sluice/rows'
import { limits } from '@sluice/schema'
import { isName } from '../../intake/entry-tracker.ts'
import { tooManyRecords } from '../../intake/records.ts'
import { Problem } from '../../problems.ts'

/** A value in a body. */
export interface FoundValue {
  readonly start: number
  readonly end: number
  /** In its shortest form. */
  readonly bytes: number
  /** How deep it is nested. A text has no level. */
  readonly levels: number
  /** Whether it has names or numbers that JSON.parse does not read correctly. */
  readonly isExact: boolean
}

/** The values of ScopeLogs. */
export interface FoundScope {
  scope: FoundValue | undefined
  schemaUrl: FoundValue | undefined
  records: FoundValue[]
}

/** The values of ResourceLogs. */
export interface FoundResource {
  resource: FoundValue | undefined
  schemaUrl: FoundValue | undefined
  scopes: FoundScope[]
}

/** The depths of the values in `{"resourceLogs":[{"scopeLogs":[{"logRecords":[record]}]}]}`. */
const depths = { resourceLogs: 1, resource: 2, scopeLogs: 3, scope: 4, logRecords: 5, record: 6 } as const

/** The names that matter, by the depth of their values. */
const knownNames: Readonly<Record<number, readonly (readonly [name: string, bytes: Buffer])[]>> = {
  [depths.resourceLogs]: names('resourceLogs'),
  [depths.scopeLogs]: names('resource', 'scopeLogs', 'schemaUrl'),
  [depths.logRecords]: names('scope', 'logRecords', 'schemaUrl'),
}

function names(...texts: readonly string[]): [string, Buffer][] {
  return texts.map((text) => [text, Buffer.from(text)])
}

/**
 * Finds the records in the JSON form of an ExportLogsServiceRequest, and what they have in common, in steps. The last of several members
 * with a name counts, as for JSON.parse.
 */
export class OtlpJsonFinder implements JsonObserver {
  readonly depthMax = depths.record
  readonly #body: Buffer
  readonly #scanner: JsonScanner
  #resources: FoundResource[] = []
  #resource: FoundResource = { resource: undefined, schemaUrl: undefined, scopes: [] }
  #scope: FoundScope = { scope: undefined, schemaUrl: undefined, records: [] }
  /** The name of the open member at each depth. Empty for names that do not matter. */
  readonly #names: string[] = Array.from({ length: depths.record + 1 }, () => '')
  #start = 0
  #startWaste = 0
  #records = 0

  /** @param body must be JSON, and an object */
  constructor(body: Buffer) {
    this.#body = body
    this.#scanner = new JsonScanner(body, 0, body.length, this)
  }

  /** @returns undefined if this was not the last step @throws Problem `invalid_body`, `too_many_entries` */
  step(bytesMax: number): readonly FoundResource[] | undefined {
    this.#scanner.scan(bytesMax)
    return this.#scanner.isDone ? this.#resources : undefined
  }

  name(start: number, end: number, depth: number): void {
    const known = knownNames[depth]
    if (known === undefined) return
    const found = known.find(([, bytes]) => isName(this.#body, start, end, bytes))
    this.#names[depth] = found?.[0] ?? ''
  }

  beginValue(at: number, byte: number, depth: number, waste: number): void {
    switch (depth) {
      case depths.resourceLogs:
        if (!this.#isAt(depth, 'resourceLogs')) break
        mustBe(byte, OPEN_BRACKET, 'resourceLogs', true)
        this.#resources = []
        break
      case depths.resource:
        if (!this.#isIn(depths.resourceLogs)) break
        mustBe(byte, OPEN_BRACE, 'an element of resourceLogs', false)
        this.#resource = { resource: undefined, schemaUrl: undefined, scopes: [] }
        break
      case depths.scopeLogs:
        if (!this.#isIn(depths.resourceLogs)) break
        if (this.#isAt(depth, 'scopeLogs')) {
          mustBe(byte, OPEN_BRACKET, 'scopeLogs', true)
          this.#resource.scopes = []
        } else this.#begin(at, waste)
        break
      case depths.scope:
        if (!this.#isIn(depths.scopeLogs)) break
        mustBe(byte, OPEN_BRACE, 'an element of scopeLogs', false)
        this.#scope = { scope: undefined, schemaUrl: undefined, records: [] }
        break
      case depths.logRecords:
        if (!this.#isIn(depths.scopeLogs)) break
        if (this.#isAt(depth, 'logRecords')) {
          mustBe(byte, OPEN_BRACKET, 'logRecords', true)
          this.#scope.records = []
        } else this.#begin(at, waste)
        break
      case depths.record:
        if (this.#isIn(depths.logRecords)) this.#begin(at, waste)
        break
      default:
    }
  }

  endValue(end: number, depth: number, waste: number): void {
    switch (depth) {
      case depths.resource:
        if (this.#isIn(depths.resourceLogs) && this.#resource.scopes.length > 0)
          this.#resources.push(this.#resource)
        break
      case depths.scopeLogs:
        if (!this.#isIn(depths.resourceLogs)) break
        if (this.#isAt(depth, 'resource')) this.#resource.resource = this.#end(end, waste, depth)
        else if (this.#isAt(depth, 'schemaUrl')) this.#resource.schemaUrl = this.#end(end, waste, depth)
        break
      case depths.scope:
        if (this.#isIn(depths.scopeLogs) && this.#scope.records.length > 0)
          this.#resource.scopes.push(this.#scope)
        break
      case depths.logRecords:
        if (!this.#isIn(depths.scopeLogs)) break
        if (this.#isAt(depth, 'scope')) this.#scope.scope = this.#end(end, waste, depth)
        else if (this.#isAt(depth, 'schemaUrl')) this.#scope.schemaUrl = this.#end(end, waste, depth)
        break
      case depths.record:
        if (!this.#isIn(depths.logRecords)) break
        this.#records += 1
        if (this.#records > limits.recordsPerRequestMax) throw tooManyRecords()
        this.#scope.records.push(this.#end(end, waste, depth))
        break
      default:
    }
  }

  #isAt(depth: number, name: string): boolean {
    return this.#names[depth] === name
  }

  /** Whether an element of this array, or a value within one, is open. */
  #isIn(depth: 1 | 3 | 5): boolean {
    return (
      this.#names[depths.resourceLogs] === 'resourceLogs' &&
      (depth < depths.scopeLogs || this.#names[depths.scopeLogs] === 'scopeLogs') &&
      (depth < depths.logRecords || this.#names[depths.logRecords] === 'logRecords')
    )
  }

  #begin(at: number, waste: number): void {
    this.#start = at
    this.#startWaste = waste
    this.#scanner.takeDeepest()
  }

  #end(end: number, waste: number, depth: number): FoundValue {
    const start = this.#start
    const { escapedNameAt, inexactNumberAt } = this.#scanner
    return {
      start,
      end,
      bytes: end - start - (waste - this.#startWaste),
      levels: Math.max(0, this.#scanner.takeDeepest() - depth),
      isExact: escapedNameAt >= start || inexactNumberAt >= start,
    }
  }
}

const OPEN_BRACKET = 0x5b
const LOWER_N = 0x6e
const OPEN_BRACE = 0x7b

/** @throws Problem `invalid_body` */
function mustBe(byte: number, expected: number, what: string, mayBeNull: boolean): void {
  if (byte === expected || (mayBeNull && byte === LOWER_N)) return
  const type = expected === OPEN_BRACE ? 'an object' : 'an array'
  throw new Problem('invalid_body', `The body is not OTLP: ${what} must be ${type}.`)
}
