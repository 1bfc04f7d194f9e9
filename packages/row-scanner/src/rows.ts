/** The scope of rows that have their own memory. */
declare const owned: unique symbol
export type Owned = typeof owned

/**
 * Rows in blocks that follow each other. `Scope` tells how long their memory is valid: for `Rows<Owned>` as long as the object exists, for
 * others until the call that provided them returns (see `Scanner.scan`). `Scope` is only a type. It is invariant: rows of one
 * scope cannot be assigned to a variable of another scope, not even to `Rows<unknown>`.
 */
export class Rows<in out Scope> {
  declare readonly scope: (scope: Scope) => Scope
  readonly count: number
  readonly #blocks: Buffer

  constructor(count: number, blocks: Buffer) {
    this.count = count
    this.#blocks = blocks
  }

  get byteLength(): number {
    return this.#blocks.length
  }

  /** Copies the rows to a position in another memory, which must have room for them. */
  copyTo(target: Uint8Array, at: number): void {
    target.set(this.#blocks, at)
  }

  /** Copies the rows into their own memory. */
  copy(): Rows<Owned> {
    return ownedRows(this.count, Buffer.from(this.#blocks))
  }
}

/** @param blocks the caller must not change them afterwards */
export function ownedRows(count: number, blocks: Buffer): Rows<Owned> {
  return new Rows<Owned>(count, blocks)
}

/** Any result but a promise: the rows given to a callback must not be used after it returns. */
export type NotAPromise = { readonly then?: never } & Readonly<Record<string, unknown>>
