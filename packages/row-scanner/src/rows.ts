/** The scope of rows that have their own memory. */
declare const owned: unique symbol
export type Owned = typeof owned

/**
 * Rows, each a line in UTF-8. `Scope` tells how long their memory is valid: for `Rows<Owned>` as long as the object exists, for
 * others until the call that provided them returns (see `RowScanner.scan`). `Scope` is only a type. It is invariant: rows of one
 * scope cannot be assigned to a variable of another scope, not even to `Rows<unknown>`.
 */
export class Rows<in out Scope> {
  declare readonly scope: (scope: Scope) => Scope
  readonly count: number
  readonly #text: Buffer

  constructor(count: number, text: Buffer) {
    this.count = count
    this.#text = text
  }

  get byteLength(): number {
    return this.#text.length
  }

  /** Copies the rows to a position in another memory, which must have room for them. */
  copyTo(target: Uint8Array, at: number): void {
    target.set(this.#text, at)
  }

  /** Copies the rows into their own memory. */
  copy(): Rows<Owned> {
    return ownedRows(this.count, Buffer.from(this.#text))
  }
}

/** @param text the rows, each with its newline; the caller must not change it afterwards */
export function ownedRows(count: number, text: string | Buffer): Rows<Owned> {
  return new Rows<Owned>(count, typeof text === 'string' ? Buffer.from(text) : text)
}

/** Any result but a promise: the rows given to a callback must not be used after it returns. */
export type NotAPromise = { readonly then?: never } & Readonly<Record<string, unknown>>
