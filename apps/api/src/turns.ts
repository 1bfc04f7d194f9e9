/** Items of groups, such as projects. Groups take turns: a group with many items does not delay the others. */
export class FairQueue<Item> {
  /** The first group is the next one. None is empty. */
  readonly #groups = new Map<string, Item[]>()
  #size = 0

  /** The number of items of all groups. */
  get size(): number {
    return this.#size
  }

  sizeOf(group: string): number {
    return this.#groups.get(group)?.length ?? 0
  }

  push(group: string, item: Item): void {
    this.#size += 1
    const items = this.#groups.get(group)
    if (items === undefined) this.#groups.set(group, [item])
    else items.push(item)
  }

  /** Removes the first item of the next group. */
  shift(): Item | undefined {
    const [next] = this.#groups
    if (next === undefined) return undefined
    const [group, items] = next
    this.#size -= 1
    const item = items.shift()
    this.#groups.delete(group)
    // The last one now.
    if (items.length > 0) this.#groups.set(group, items)
    return item
  }
}

/** Short works share a turn for this long. Then other requests are served. */
const SHARED_MS = 5

/**
 * Gives out the turns of the event loop to work that many requests or connections may cause at once: the loop never does the work of two of
 * them without serving all others in between, except for short work, which shares a turn. Groups, such as projects, take turns: a group with
 * much work does not delay the others.
 */
export class Turns {
  readonly #schedule: (turn: () => void) => void
  readonly #monotonicMs: () => number
  readonly #sharedMs: number
  /** At most one per request or connection. */
  readonly #waiting = new FairQueue<() => void>()
  /** When the time ends that all work which begins in this turn has together. Undefined if none has begun. */
  #beginningEndMs: number | undefined

  /** @param sharedMs for how long a turn is given to one after the other. 0: each turn is given once */
  constructor(
    schedule: (turn: () => void) => void = setImmediate,
    monotonicMs: () => number = () => performance.now(),
    sharedMs: number = SHARED_MS,
  ) {
    this.#schedule = schedule
    this.#monotonicMs = monotonicMs
    this.#sharedMs = sharedMs
  }

  /** Each turn is given once: for work that continues after it, such as a read. */
  static unshared(): Turns {
    return new Turns(undefined, undefined, 0)
  }

  /**
   * Begins the work of a request, in the current turn. A hundred connections may have a request in it, so they share some milliseconds, and do not
   * overtake those that wait. @returns undefined if it may begin at once, or else when it may
   */
  begin(group: string): Promise<void> | undefined {
    const nowMs = this.#monotonicMs()
    if (this.#beginningEndMs === undefined) {
      this.#beginningEndMs = nowMs + SHARED_MS
      this.#schedule(() => {
        this.#beginningEndMs = undefined
      })
    }
    return this.#waiting.size === 0 && nowMs < this.#beginningEndMs ? undefined : this.next(group)
  }

  /** Resolves in a later turn, in the order of the calls of a group. */
  next(group = ''): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(group, resolve)
      if (this.#waiting.size === 1) this.#schedule(this.#give)
    })
  }

  readonly #give = (): void => this.#giveUntil(this.#monotonicMs() + this.#sharedMs)

  #giveUntil(endMs: number): void {
    this.#waiting.shift()?.()
    if (this.#waiting.size === 0) return
    // A tick from a microtask comes after all microtasks: the work of the one before.
    queueMicrotask(() =>
      process.nextTick(() => {
        if (this.#monotonicMs() < endMs) this.#giveUntil(endMs)
        else this.#schedule(this.#give)
      }),
    )
  }
}
