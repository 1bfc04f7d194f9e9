import { type EntryValidator, parseChecked, type RowPrefix, shapeRow } from '@sluice/rows'
import type { EntryError } from '@sluice/schema'
import { Problem } from '../problems.ts'
import type { Excess, FoundEntry } from './entry-tracker.ts'
import { InvalidLine } from './invalid-line.ts'

/** What the rows of a request have in common. */
export interface Stamped {
  readonly prefix: RowPrefix
  /** ISO 8601 */
  readonly receivedAt: string
}

export interface EntryRow {
  readonly row: string
  readonly id: string
  /** The entry's own, or the time of receipt. */
  readonly timestamp: string
}

type Shaped =
  | EntryRow
  /** The characters are those of metadata that was written before the entry was found to be invalid. */
  | { readonly errors: readonly EntryError[]; readonly metadataCharacters?: number }

/** An escaped half of a surrogate pair: the only form in which valid UTF-8 can contain one. */
const ESCAPED_SURROGATE = /\\u[dD][89a-fA-F]/

/** Makes rows of the entries in a body. */
export class EntryShaper {
  readonly #validator: EntryValidator
  readonly #makeId: () => string
  readonly #stamped: Stamped

  constructor(validator: EntryValidator, makeId: () => string, stamped: Stamped) {
    this.#validator = validator
    this.#makeId = makeId
    this.#stamped = stamped
  }

  /** @param body the body in which the entry was found */
  shape(found: FoundEntry | InvalidLine, body: Buffer): Shaped {
    if (found instanceof InvalidLine) return { errors: [found.error] }
    // The errors are the same for every value that is not an object.
    if (!found.isObject) return { errors: this.#validator.explain(null) }
    if (found.excess !== undefined) return this.#explainExcess(found.excess)
    const text = body.toString('utf8', found.start, found.end)
    // A search for a backslash is much cheaper than the expression, and usually sufficient.
    const mayHoldLoneSurrogates = text.includes('\\u') && ESCAPED_SURROGATE.test(text)
    return this.shapeValue(parseChecked(text, found.isExact), mayHoldLoneSurrogates)
  }

  /** @param value what was parsed; it must not be used afterwards */
  shapeValue(value: unknown, mayHoldLoneSurrogates: boolean): Shaped {
    if (!this.#validator.isEntry(value)) return { errors: this.#validator.explain(value) }
    const id = this.#makeId()
    const timestamp = value.timestamp ?? this.#stamped.receivedAt
    const shaped = shapeRow(value, id, this.#stamped.prefix, mayHoldLoneSurrogates)
    if ('row' in shaped) return { row: shaped.row, id, timestamp }
    return { errors: [shaped.error], metadataCharacters: shaped.metadataCharacters }
  }

  /** Like `shapeRow`, this checks the metadata after the structure. */
  #explainExcess({ substitute, error }: Excess): Shaped {
    if (error !== undefined && this.#validator.isEntry(substitute)) return { errors: [error] }
    return this.shapeValue(substitute, false)
  }
}

/** The problem of a body that is one invalid entry. */
export function invalidEntry(errors: readonly EntryError[]): Problem {
  const [first] = errors
  const where = first === undefined || first.path === '' ? 'The entry' : first.path
  return new Problem('invalid_entry', `${where}: ${first?.message ?? 'is invalid'}.`, { errors })
}
