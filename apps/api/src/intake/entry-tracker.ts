import { type JsonScanner, metadataError } from '@sluice/rows'
import { type EntryError, entrySchema, limits } from '@sluice/schema'

/** Where an entry is in a body, and what is known of it before it is parsed. */
export interface FoundEntry {
  /** The place of its first byte. */
  readonly start: number
  /** The place after its last byte. */
  readonly end: number
  readonly isObject: boolean
  /** Whether it has names or numbers that JSON.parse does not read correctly. */
  readonly isExact: boolean
  /** Why it is rejected without being parsed: it is larger than any valid entry. */
  readonly excess: Excess | undefined
}

/** What is wrong with an entry that is not parsed. A text that is not allowed, and metadata with too many names, are not noticed. */
export interface Excess {
  /** An entry with small values: it has the same fields missing, too long or of a wrong type. */
  readonly substitute: Readonly<Record<string, unknown>>
  /** The error if the substitute has the structure of an entry: its metadata is too large or too deep. */
  readonly error: EntryError | undefined
}

const entryBounds = {
  /**
   * The size of an entry in its shortest form, without its texts. It is at least as large as the stored metadata. The addition is for
   * the names and values of the other fields, which have less than 300 bytes.
   */
  weightMax: limits.metadataBytesMax + 1_024,
  /** A character takes at most this many bytes: two escapes for a surrogate pair. */
  bytesPerCharacterMax: 12,
  /** For fields whose values are short: a timestamp or one of the allowed values. */
  shortTextCharactersMax: 256,
} as const

/** A field with a column of its own. */
interface Field {
  readonly index: number
  /** One bit for each field. */
  readonly bit: number
  readonly name: string
  readonly bytes: Buffer
  readonly charactersMax: number
  /** Everything else may have any size in the text, but `metadata` has no text of its own. */
  readonly isText: boolean
  /** A small valid value. Null for an optional field. */
  readonly valid: string | null
}

const required: readonly string[] = entrySchema.required

const fields: readonly Field[] = Object.entries(entrySchema.properties).map(([name, property], index) => ({
  index,
  bit: 1 << index,
  name,
  bytes: Buffer.from(name),
  charactersMax: 'maxLength' in property ? property.maxLength : entryBounds.shortTextCharactersMax,
  isText: name !== 'metadata',
  valid: !required.includes(name) ? null : 'enum' in property ? property.enum[0] : '',
}))

const requiredBits = fields.reduce((bits, { bit, valid }) => (valid === null ? bits : bits | bit), 0)

/** The fields by the length of their names. */
const fieldsByLength: readonly (readonly Field[])[] = Array.from(
  { length: Math.max(...fields.map(({ bytes }) => bytes.length)) + 1 },
  (_, length) => fields.filter(({ bytes }) => bytes.length === length),
)

function findField(body: Uint8Array, start: number, end: number): Field | undefined {
  for (const field of fieldsByLength[end - start - 2] ?? []) {
    if (isName(body, start, end, field.bytes)) return field
  }
  // Names with escapes are rare.
  return hasEscape(body, start, end) ? fields.find(({ bytes }) => isName(body, start, end, bytes)) : undefined
}

function hasEscape(body: Uint8Array, start: number, end: number): boolean {
  for (let at = start + 1; at < end; at += 1) if (body[at] === BACKSLASH) return true
  return false
}

/**
 * Whether a name, with its quotes in the bytes from `start` to `end`, is this text. Compares byte by byte: a body may have hundreds of
 * thousands of names, each with escapes.
 *
 * @param text ASCII without characters that JSON has a short escape for
 */
export function isName(body: Uint8Array, start: number, end: number, text: Uint8Array): boolean {
  let at = start + 1
  for (let i = 0; i < text.length; i += 1) {
    const byte = text[i] ?? 0
    if (body[at] === byte) at += 1
    else if (escapedByte(body, at) === byte) at += ESCAPE_BYTES
    else return false
  }
  return at === end - 1
}

/** The ASCII character of an escape like `\u0061`; negative if there is none. */
function escapedByte(body: Uint8Array, at: number): number {
  const isEscape =
    body[at] === BACKSLASH && body[at + 1] === LOWER_U && body[at + 2] === ZERO && body[at + 3] === ZERO
  return isEscape ? hexValue(body[at + 4] ?? 0) * 16 + hexValue(body[at + 5] ?? 0) : -1
}

/** @param digit a hexadecimal digit */
function hexValue(digit: number): number {
  return digit <= NINE ? digit - ZERO : (digit & 0x0f) + 9
}

const ESCAPE_BYTES = 6

/**
 * Follows the members of one entry while a body is scanned. An entry that is too large is rejected without being parsed.
 *
 * Members that are not stored count as well, because they take as long to parse: values of repeated names except the last text of a
 * field, and unknown fields that `metadata` has a member for. So an entry with 64 KiB of them may be rejected, although its row would be
 * small enough.
 */
export class EntryTracker {
  readonly #body: Buffer
  #start = 0
  #startWaste = 0
  #isObject = false
  /** The field whose value comes next. */
  #field: Field | undefined
  #textStart = -1
  #textStartWaste = 0
  /** The size of the text of each field in its shortest form: of the last one, if the field is repeated. */
  readonly #textBytes = new Uint32Array(fields.length)
  /** The bits of the fields that the entry has. */
  #seen = 0
  /** The bits of the fields whose last value has a wrong type. */
  #wrongType = 0
  /** The bits of the fields whose last value is too long. */
  #tooLong = 0
  /** The levels of the metadata with the unknown fields. */
  #levels = 0

  constructor(body: Buffer) {
    this.#body = body
  }

  /** Whether the last entry has a field that every entry has. */
  get isLikeEntry(): boolean {
    return (this.#seen & requiredBits) !== 0
  }

  begin(at: number, byte: number, waste: number): void {
    this.#start = at
    this.#startWaste = waste
    this.#isObject = byte === OPEN_BRACE
    this.#field = undefined
    this.#textStart = -1
    this.#textBytes.fill(0)
    this.#seen = 0
    this.#wrongType = 0
    this.#tooLong = 0
    this.#levels = 0
  }

  name(start: number, end: number): void {
    this.#field = findField(this.#body, start, end)
  }

  beginMember(at: number, byte: number, waste: number): void {
    const field = this.#field
    if (field === undefined) return
    // As for JSON.parse, the last value of a repeated field counts.
    this.#seen |= field.bit
    this.#textBytes[field.index] = 0
    this.#wrongType &= ~field.bit
    this.#tooLong &= ~field.bit
    if (field.isText && byte === QUOTE) {
      this.#textStart = at
      this.#textStartWaste = waste
    } else if (byte === LOWER_N ? field.valid !== null : field.isText || byte !== OPEN_BRACE)
      this.#wrongType |= field.bit
  }

  /** @param levels how deep the value is nested: 0 for a text or a number */
  endMember(end: number, waste: number, levels: number): void {
    const field = this.#field
    this.#field = undefined
    // An unknown field becomes a member of the metadata.
    if (field === undefined) this.#levels = Math.max(this.#levels, levels + 1)
    else if (!field.isText) this.#levels = Math.max(this.#levels, levels)
    if (field === undefined || this.#textStart === -1) return
    const bytes = end - this.#textStart
    if (bytes > entryBounds.bytesPerCharacterMax * field.charactersMax + 2) this.#tooLong |= field.bit
    this.#textBytes[field.index] = bytes - (waste - this.#textStartWaste)
    this.#textStart = -1
  }

  end(end: number, waste: number, scanner: JsonScanner): FoundEntry {
    const start = this.#start
    let weight = end - start - (waste - this.#startWaste)
    for (const bytes of this.#textBytes) weight -= bytes
    return {
      start,
      end,
      isObject: this.#isObject,
      isExact: scanner.escapedNameAt >= start || scanner.inexactNumberAt >= start,
      excess: this.#isObject ? this.#excess(weight > entryBounds.weightMax) : undefined,
    }
  }

  #excess(isHeavy: boolean): Excess | undefined {
    if (!isHeavy && this.#tooLong === 0) return undefined
    const substitute: Record<string, unknown> = {}
    for (const { bit, name, charactersMax, valid } of fields) {
      if ((this.#tooLong & bit) !== 0) substitute[name] = 'x'.repeat(charactersMax + 1)
      else if ((this.#wrongType & bit) !== 0) substitute[name] = []
      else if ((this.#seen & bit) !== 0) substitute[name] = valid
    }
    const code = this.#levels > limits.metadataDepthMax ? 'too_deep' : 'too_large'
    return { substitute, error: isHeavy ? metadataError(code, 'metadata' in substitute) : undefined }
  }
}

const QUOTE = 0x22
const ZERO = 0x30
const NINE = 0x39
const BACKSLASH = 0x5c
const LOWER_N = 0x6e
const LOWER_U = 0x75
const OPEN_BRACE = 0x7b
