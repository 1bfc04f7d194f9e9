import { errorOf } from './answers.ts'

/** Why an item is rejected. */
export interface ItemError {
  readonly type: string
  readonly reason: string
}

/** An answer has up to 16 Ki errors. Each further reason costs memory and time. */
const REASONS_MAX = 512
/** Enough to find the cause. A reason may have a name that the client chose. */
const REASON_CHARACTERS_MAX = 160

/** The errors of one answer as JSON. */
export class ItemErrors {
  readonly #known = new Map<string, string>()

  /** The JSON of an error. Its reason may be shortened or, after many others, omitted. */
  json({ type, reason }: ItemError): string {
    const key = `${type} ${reason}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    if (this.#known.size >= REASONS_MAX)
      return JSON.stringify(errorOf(type, 'There are too many different reasons to give this one'))
    const made = JSON.stringify(errorOf(type, shorten(reason)))
    this.#known.set(key, made)
    return made
  }
}

function shorten(reason: string): string {
  return reason.length <= REASON_CHARACTERS_MAX
    ? reason
    : `${reason.slice(0, REASON_CHARACTERS_MAX - 1).toWellFormed()}…`
}
