import type { RecentLag } from '@sluice/ops'

/** The time that `read` covers, at least. */
const WINDOW_MS = 60_000
/** One slice is forgotten at a time. */
const SLICE_MS = 5_000

interface Slice {
  readonly startedMs: number
  chunks: number
  sumS: number
  maxS: number
}

/** The lag of the chunks that a worker has stored in the last minute. */
export class LagWindow {
  readonly #monotonicMs: () => number
  /** At most one per `SLICE_MS`, the newest last. */
  #slices: Slice[] = []

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
  }

  /** Counts a chunk. */
  add(seconds: number): void {
    const nowMs = this.#monotonicMs()
    let slice = this.#slices.at(-1)
    if (slice === undefined || nowMs - slice.startedMs >= SLICE_MS) {
      slice = { startedMs: nowMs, chunks: 0, sumS: 0, maxS: 0 }
      this.#slices = [...this.#recent(nowMs), slice]
    }
    slice.chunks += 1
    slice.sumS += seconds
    slice.maxS = Math.max(slice.maxS, seconds)
  }

  /** Undefined if no chunk was stored in the last minute. */
  read(): RecentLag | undefined {
    const slices = this.#recent(this.#monotonicMs())
    if (slices.length === 0) return undefined
    const chunks = slices.reduce((sum, slice) => sum + slice.chunks, 0)
    const sumS = slices.reduce((sum, slice) => sum + slice.sumS, 0)
    const maxS = Math.max(...slices.map((slice) => slice.maxS))
    return { chunks, meanS: round(sumS / chunks), maxS: round(maxS) }
  }

  #recent(nowMs: number): Slice[] {
    return this.#slices.filter(({ startedMs }) => nowMs - startedMs < WINDOW_MS + SLICE_MS)
  }
}

const round = (seconds: number): number => Math.round(seconds * 1_000) / 1_000
