/** The newest items up to a number. Counts those that it has dropped. */
export class RingBuffer<Item> {
  readonly #items: Item[] = []
  readonly #capacity: number
  #oldest = 0
  dropped = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get size(): number {
    return this.#items.length
  }

  push(item: Item): void {
    if (this.#items.length < this.#capacity) {
      this.#items.push(item)
      return
    }
    this.#items[this.#oldest] = item
    this.#oldest = (this.#oldest + 1) % this.#capacity
    this.dropped += 1
  }

  /** Removes all items. @returns them, newest first */
  take(): Item[] {
    const items = [...this.#items.slice(this.#oldest), ...this.#items.slice(0, this.#oldest)].toReversed()
    this.#items.length = 0
    this.#oldest = 0
    this.dropped = 0
    return items
  }
}
