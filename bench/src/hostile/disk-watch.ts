import { pause } from '@sluice/harness'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'

const INTERVAL_MS = 50
const block = Buffer.alloc(16_384, 'l')

/**
 * Writes and syncs the same block every 50 ms until it is stopped. Redis syncs each batch of writes before it answers: no answer of the API comes
 * sooner than the disk has it.
 */
export class DiskWatch {
  #slowestMs = 0
  readonly #over = new AbortController()
  readonly #watching: Promise<void>

  /** @param folder on the disk */
  constructor(folder: string) {
    this.#watching = this.#watch(join(folder, 'disk-watch'))
  }

  /** @returns the duration of the slowest sync, in milliseconds */
  async stop(): Promise<number> {
    this.#over.abort()
    await this.#watching
    return this.#slowestMs
  }

  async #watch(path: string): Promise<void> {
    const file = await open(path, 'w')
    while (!this.#over.signal.aborted) {
      await file.write(block, 0, block.length, 0)
      const startedMs = performance.now()
      await file.datasync()
      this.#slowestMs = Math.max(this.#slowestMs, performance.now() - startedMs)
      await pause(INTERVAL_MS)
    }
    await file.close()
    await rm(path)
  }
}
