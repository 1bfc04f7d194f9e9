import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { quantile } from './rates.ts'

/** As Redis' file grows at half of the highest rate: some two hundred appends a second, of a chunk each. */
const APPEND_BYTES = 30_000
const PAUSE_MS = 4
const DURATION_MS = 10_000
/** How finely the moments lie at which the disk is looked at, ms. */
const MOMENTS_MS = 0.1

/** What the disk takes by itself. */
export interface DiskTimes {
  readonly appendBytes: number
  readonly appendP50Ms: number
  readonly appendP99Ms: number
  /**
   * Whoever comes while an append is on its way to the disk waits for its end at least: how long, for the unluckiest of a
   * hundred. No acknowledgement that is given only when it is on disk has a lower p99.
   */
  readonly waitP99Ms: number
}

/**
 * Appends to a file for ten seconds, each append on disk before the next, while nothing else runs.
 *
 * @param folder on the disk in question
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
  const waitsMs: number[] = []
  for (const appendMs of appendsMs) {
    for (let waitMs = appendMs; waitMs > 0; waitMs -= MOMENTS_MS) waitsMs.push(waitMs)
  }
  // In the pauses nobody waits.
  while (waitsMs.length < DURATION_MS / MOMENTS_MS) waitsMs.push(0)
  return {
    appendBytes: APPEND_BYTES,
    appendP50Ms: quantile(appendsMs, 0.5) ?? 0,
    appendP99Ms: quantile(appendsMs, 0.99) ?? 0,
    waitP99Ms: quantile(waitsMs, 0.99) ?? 0,
  }
}
