import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { DurationHistogram } from './duration-histogram.ts'

/** The growth of Redis' append-only file at half of the highest rate: about two hundred appends a second, one chunk each. */
const APPEND_BYTES = 30_000
const PAUSE_MS = 4
const DURATION_MS = 10_000
/** Distance between the assumed arrival times when waits are computed. */
const ARRIVAL_STEP_MS = 0.1

/** Latency of the disk without other load. */
export interface DiskTimes {
  readonly appendBytes: number
  readonly appendP50Ms: number
  readonly appendP99Ms: number
  /**
   * A request that arrives during an append waits at least until it ends. This is the 99th percentile of that wait, and
   * thus a lower bound for the p99 of acknowledgements that are given only after the data is on disk.
   */
  readonly waitP99Ms: number
}

/**
 * Appends to a file for ten seconds. Each append is on disk before the next one starts. Nothing else may run meanwhile.
 *
 * @param folder a folder on the disk to measure
 */
export async function measureDisk(folder: string): Promise<DiskTimes> {
  const path = join(folder, 'disk-probe')
  const file = await open(path, 'a', 0o600)
  const appendsMs: number[] = []
  const startedMs = performance.now()
  try {
    const bytes = Buffer.alloc(APPEND_BYTES, 'x')
    while (performance.now() < startedMs + DURATION_MS) {
      const appendedMs = performance.now()
      await file.write(bytes)
      await file.datasync()
      appendsMs.push(performance.now() - appendedMs)
      await delay(PAUSE_MS)
    }
  } finally {
    await file.close()
    await rm(path)
  }
  return { appendBytes: APPEND_BYTES, ...summarize(appendsMs) }
}

/** Assumes requests that arrive at evenly spaced times over the whole duration. */
function summarize(appendsMs: readonly number[]): Omit<DiskTimes, 'appendBytes'> {
  const appends = new DurationHistogram()
  const waits = new DurationHistogram()
  let arrivals = 0
  for (const appendMs of appendsMs) {
    appends.record(appendMs)
    for (let waitMs = appendMs; waitMs > 0; waitMs -= ARRIVAL_STEP_MS) {
      waits.record(waitMs)
      arrivals += 1
    }
  }
  // A request that arrives between two appends does not wait.
  for (; arrivals < DURATION_MS / ARRIVAL_STEP_MS; arrivals += 1) waits.record(0)
  return {
    appendP50Ms: appends.percentileMs(50) ?? 0,
    appendP99Ms: appends.percentileMs(99) ?? 0,
    waitP99Ms: waits.percentileMs(99) ?? 0,
  }
}
