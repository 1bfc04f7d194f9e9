/** An event that may happen again and again. */
export class Changes {
  readonly #listeners = new Set<() => void>()

  /** @returns a function that ends the calls */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Resolves when it happens the next time. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      const unsubscribe = this.subscribe(() => {
        unsubscribe()
        resolve()
      })
    })
  }

  happen(): void {
    for (const listener of this.#listeners) listener()
  }
}
