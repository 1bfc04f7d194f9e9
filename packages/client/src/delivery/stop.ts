import { Changes } from './changes.ts'

/**
 * Ends all requests of a client. Not an AbortSignal: of one with more than ten listeners, Node 20 warns as of a leak, and a client may have a
 * hundred requests.
 */
export class Stop {
  readonly #changes = new Changes()
  #hasHappened = false

  get hasHappened(): boolean {
    return this.#hasHappened
  }

  happen(): void {
    this.#hasHappened = true
    this.#changes.happen()
  }

  /**
   * Calls the listener when it happens, or at once if it has.
   *
   * @returns a function that ends this
   */
  subscribe(listener: () => void): () => void {
    if (this.#hasHappened) listener()
    return this.#changes.subscribe(listener)
  }
}
