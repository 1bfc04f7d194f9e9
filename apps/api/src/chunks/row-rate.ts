export const gatherLimits = {
  /** Up to this rate, rows are not gathered on purpose: an ack is more important than the cost of a chunk. */
  freeRowsPerS: 100_000,
  /** From this rate on, rows are gathered for the whole interval. One API process uses most of a core. */
  fullRowsPerS: 200_000,
  intervalMaxMs: 4,
  /** Above about 1,000 rows, the fixed cost of a chunk is below 1 µs per row. */
  rowsMax: 1_000,
} as const

/** A sudden change of the load counts in full after a few of these. */
const MEMORY_MS = 100

/**
 * The time from the start of one add to the start of the next in which rows are gathered, ms. A chunk costs all processes together
 * several hundred microseconds, whatever its size: at a high rate, small chunks would take a tenth of a core from the entries.
 */
export function gatherIntervalMs(rowsPerS: number): number {
  const { freeRowsPerS, fullRowsPerS, intervalMaxMs, rowsMax } = gatherLimits
  const share = Math.min(1, (rowsPerS - freeRowsPerS) / (fullRowsPerS - freeRowsPerS))
  return share <= 0 ? 0 : share * Math.min(intervalMaxMs, (rowsMax / rowsPerS) * 1_000)
}

/** The rate of the rows that were sent, as a mean in which older rows count less. */
export class RowRate {
  #perS = 0
  #atMs: number | undefined

  get perS(): number {
    return this.#perS
  }

  /** @param nowMs a monotonic clock */
  record(rows: number, nowMs: number): void {
    const sinceMs = nowMs - (this.#atMs ?? Number.NEGATIVE_INFINITY)
    this.#atMs = nowMs
    const decay = Math.exp(-sinceMs / MEMORY_MS)
    this.#perS = this.#perS * decay + rows * (1_000 / MEMORY_MS)
  }
}
