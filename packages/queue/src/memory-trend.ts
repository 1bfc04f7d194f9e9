import type { ServerMemory } from './queue-gauge.ts'

/** Long enough for the rewrites of an append-only file, and short enough for an outage of ClickHouse. */
const WINDOW_MS = 300_000
/** Fewer than two samples per this time are kept: 30 in a window. */
const SAMPLE_INTERVAL_MS = 10_000

interface MemorySample {
  readonly atMs: number
  readonly usedBytes: number
}

/** How fast the memory of each Redis server grows. */
export class MemoryTrend {
  readonly #monotonicMs: () => number
  readonly #samples = new Map<string, MemorySample[]>()

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
  }

  /**
   * Records the memory of a server.
   *
   * @returns the time in seconds until its limit at the rate of the last five minutes; Infinity if it does not grow
   */
  headroomS({ server, usedBytes, limitBytes }: ServerMemory): number {
    const atMs = this.#monotonicMs()
    const samples = (this.#samples.get(server) ?? []).filter((sample) => atMs - sample.atMs <= WINDOW_MS)
    const [first] = samples
    const last = samples.at(-1)
    if (last === undefined || atMs - last.atMs >= SAMPLE_INTERVAL_MS) samples.push({ atMs, usedBytes })
    this.#samples.set(server, samples)
    this.#forget(atMs)
    const grownBytes = first === undefined ? 0 : usedBytes - first.usedBytes
    if (first === undefined || grownBytes <= 0) return Number.POSITIVE_INFINITY
    return (Math.max(0, limitBytes - usedBytes) * (atMs - first.atMs)) / grownBytes / 1_000
  }

  /** A server that was replaced never returns. */
  #forget(nowMs: number): void {
    for (const [server, samples] of this.#samples)
      if (nowMs - (samples.at(-1)?.atMs ?? nowMs) > WINDOW_MS) this.#samples.delete(server)
  }
}
