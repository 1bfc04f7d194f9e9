// The slow definition of how a record is repaired that is above a limit.
import { entryOfRecord, type Members } from '@sluice/records'
import { limits } from '@sluice/schema'
import { parseText, toValue, type Value } from './json.ts'
import { nameOf } from './reference.ts'

/** The codes of what was repaired. */
export type Faults = Set<string>

/** A name as JSON, and a value. */
export type Named = readonly [nameText: string, value: Value]

const MARK = 'sluiceRepaired'
/** The mark with all codes. */
export const MARK_BYTES = 128

const SHORTEST_MEMBER = '"":0'.length
const SHORTEST_ELEMENT = 1
/** When something has gone because it is too large, nothing more is tried for less room. */
const FULL_BYTES = 64

/** A message is cut later. What is too deep in OTLP has no text that could stay. */
type Kind = 'metadata' | 'message' | 'otlp'

/** Writes JSON into so many bytes. What does not fit goes, and the first that fits stays. */
class Writer {
  readonly #faults: Faults
  #left: number
  readonly #kind: Kind

  constructor(bytesMax: number, faults: Faults, kind: Kind) {
    this.#left = bytesMax
    this.#faults = faults
    this.#kind = kind
  }

  members(members: readonly Named[], level: number, namesMax: number): string[] {
    return this.#list(
      members.map(
        ([nameText, value]) =>
          (left: number) =>
            this.#member(nameText, value, level, left),
      ),
      level,
      SHORTEST_MEMBER,
      namesMax,
    )
  }

  value(value: Value, level: number): string | undefined {
    if (value.kind !== 'object' && value.kind !== 'array') return this.#take(this.#rawOf(value))
    if (this.#kind === 'message' && isDeep(value, level)) return JSON.stringify(toValue(value))
    if (this.#kind === 'metadata' && isDeep(value, level)) {
      this.#note('too_deep')
      return this.#take(JSON.stringify(JSON.stringify(toValue(value))))
    }
    if (level === limits.metadataDepthMax) return this.#note('too_deep')
    this.#left -= 1
    const texts =
      value.kind === 'array'
        ? this.#list(
            value.elements.map((element) => () => this.value(element, level + 1)),
            level + 1,
            SHORTEST_ELEMENT,
          )
        : this.members(membersOf(value), level + 1, Infinity)
    this.#left -= texts.length === 0 ? 1 : 0
    return value.kind === 'array' ? `[${texts.join(',')}]` : `{${texts.join(',')}}`
  }

  #member(nameText: string, value: Value, level: number, left: number): string | undefined {
    const name = JSON.parse(nameText) as string
    if (!name.isWellFormed()) this.#faults.add('invalid_unicode')
    const decoded = Buffer.byteLength(name.toWellFormed())
    if (decoded + level > left) return this.#note('too_large')
    const before = this.#take(`${name.isWellFormed() ? nameText : JSON.stringify(name.toWellFormed())}:`)
    const text = this.value(value, level)
    return text === undefined ? undefined : before + text
  }

  /** @param level of the list @param shortest bytes of an element @param namesMax how many there may be */
  #list(
    elements: readonly ((left: number) => string | undefined)[],
    level: number,
    shortest: number,
    namesMax = Infinity,
  ): string[] {
    const texts: string[] = []
    for (const write of elements) {
      if (this.#left < (this.#faults.has('too_large') ? FULL_BYTES : shortest) + level) {
        this.#note('too_large')
        break
      }
      if (texts.length === namesMax) {
        this.#note('too_many_names')
        continue
      }
      const left = this.#left
      const text = write(left)
      if (text !== undefined && this.#left >= level) {
        // A comma, in whose place the list ends.
        this.#left -= 1
        texts.push(text)
        continue
      }
      if (text !== undefined) this.#note('too_large')
      this.#left = left
    }
    return texts
  }

  #take(text: string): string {
    this.#left -= Buffer.byteLength(text)
    return text
  }

  #note(code: string): undefined {
    this.#faults.add(code)
  }

  #rawOf(value: Exclude<Value, { kind: 'array' | 'object' }>): string {
    if (value.kind !== 'string' || value.string.isWellFormed()) return value.raw
    this.#faults.add('invalid_unicode')
    return JSON.stringify(value.string.toWellFormed())
  }
}
/** OTLP compares names whose halves of surrogate pairs are replaced, so only the raw name shows that. */
const nameTextOf = (name: string, raw: string): string =>
  (JSON.parse(raw) as string).isWellFormed() ? nameOf(name, raw) : raw
const isDeep = (value: Value, level: number): boolean => {
  if (value.kind !== 'array' && value.kind !== 'object') return false
  const values = value.kind === 'array' ? value.elements : membersOf(value).map(([, inner]) => inner)
  return level >= limits.metadataDepthMax || values.some((inner) => isDeep(inner, level + 1))
}

const membersOf = (value: Value): Named[] =>
  value.kind === 'object'
    ? [...value.members].map(([name, member]) => [nameTextOf(name, member.rawName), member.value])
    : []

/** The members of metadata that stay, as JSON. */
export function writeMembers(
  members: readonly Named[],
  bytesMax: number,
  faults: Faults,
  namesMax: number = limits.metadataNamesMax,
  kind: Kind = 'metadata',
): string[] {
  return new Writer(bytesMax - 1, faults, kind).members(members, 1, namesMax)
}

/** The metadata of a record. @param common members that were written before */
export function metadataOf(
  members: readonly Named[],
  faults: Faults,
  common: readonly string[] = [],
  kind: Kind = 'metadata',
): string {
  const bytesOfCommon = common.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0)
  const bytesMax = limits.metadataBytesMax - bytesOfCommon
  const whole = faults.size === 0 ? writeMembers(members, bytesMax, faults, undefined, kind) : []
  if (faults.size === 0) return `{${[...whole, ...common].join(',')}}`
  const kept = writeMembers(
    members.filter(([nameText]) => nameText !== `"${MARK}"`),
    bytesMax - MARK_BYTES,
    faults,
    limits.metadataNamesMax - 1,
    kind,
  )
  return `{${[...kept, ...common, `"${MARK}":${JSON.stringify([...faults].toSorted())}`].join(',')}}`
}

/** A text of a column. */
export function columnOf(text: string, charactersMax: number, faults: Faults): string {
  if (!text.isWellFormed()) faults.add('invalid_unicode')
  const characters = Array.from(text.toWellFormed())
  if (characters.length > charactersMax) faults.add('too_long')
  return characters.slice(0, charactersMax).join('')
}

/** The JSON of a value of OTLP, which is a member of metadata, as a text. */
export function jsonOfOtlp(value: Value, faults: Faults): string {
  return new Writer(limits.metadataBytesMax, faults, 'otlp').value(value, 1) ?? ''
}

/** The JSON of a value as a text. */
export function jsonOf(value: Value, faults: Faults): string {
  return new Writer(Infinity, faults, 'message').value(value, 0) ?? ''
}

/** A value without a source of its own. */
export function valueOf(plain: unknown): Value {
  const value = parseText(JSON.stringify(plain))
  if (typeof value === 'string') throw new Error(value)
  return value
}

export const namedOf = (plain: object): Named[] => membersOf(valueOf(plain))

/** The entry of a record of a logger. The message may be the JSON of the record. */
export function toEntry(record: Members, faults: Faults): Members {
  const entry = entryOfRecord(record, { defaultLevel: 'log' })
  if (entry['message'] !== JSON.stringify(record)) return entry
  const members = writeMembers(namedOf(record), Infinity, faults, Infinity, 'message')
  return { ...entry, message: `{${members.join(',')}}` }
}
