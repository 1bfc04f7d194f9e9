import type { HeldChunk } from '@sluice/queue'
import { hasRowOf, type RowKey } from '@sluice/rows'
import type { MonotonicClock } from '@sluice/runtime'

/** The chunks of a project are in separate batches for this long after ClickHouse has rejected one of its rows. */
export const APART_MS = 60_000
/** Each costs a search in the rows of each chunk. */
const PROJECTS_MAX = 16

/**
 * The projects with rows that ClickHouse has rejected within `APART_MS`. The collector puts their chunks into separate batches, so that rows
 * of other projects do not wait while those batches are inserted in parts.
 */
export class RejectedProjects {
  readonly #clock: Pick<MonotonicClock, 'nowMs'>
  /** The last rejection of each project, the oldest first. */
  readonly #lastMs = new Map<string, number>()

  constructor(clock: Pick<MonotonicClock, 'nowMs'>) {
    this.#clock = clock
  }

  note(rows: Iterable<RowKey>): void {
    const nowMs = this.#clock.nowMs()
    for (const { projectId } of rows) {
      this.#lastMs.delete(projectId)
      this.#lastMs.set(projectId, nowMs)
    }
    for (const projectId of this.#lastMs.keys())
      if (this.#lastMs.size > PROJECTS_MAX) this.#lastMs.delete(projectId)
  }

  /** Whether a chunk has a row of one of them. */
  haveRowsIn({ frame }: Pick<HeldChunk, 'frame'>): boolean {
    const sinceMs = this.#clock.nowMs() - APART_MS
    for (const [projectId, lastMs] of this.#lastMs) if (lastMs < sinceMs) this.#lastMs.delete(projectId)
    return this.#lastMs.size > 0 && hasRowOf(this.#lastMs.keys(), frame)
  }
}
