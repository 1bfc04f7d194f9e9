/** Which nodes something happened at within the last while: what happens again at once is not told again. */
export class RecentNodes {
  readonly #intervalMs: number
  readonly #now: () => number
  /** When each was told of, ms; the oldest first. */
  readonly #toldAtMs = new Map<string, number>()

  /** @param now a clock in ms that never goes back */
  constructor(intervalMs: number, now: () => number) {
    this.#intervalMs = intervalMs
    this.#now = now
  }

  /** @returns false when the node is among them already; it stays there no longer for that */
  add(node: string): boolean {
    const nowMs = this.#now()
    for (const [name, toldAtMs] of this.#toldAtMs) {
      if (nowMs - toldAtMs < this.#intervalMs) break
      this.#toldAtMs.delete(name)
    }
    if (this.#toldAtMs.has(node)) return false
    this.#toldAtMs.set(node, nowMs)
    return true
  }
}
