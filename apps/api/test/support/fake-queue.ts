import type { FoundRecord, NewChunk, QueueRecord } from '@sluice/queue'
import { rowAsJson, rowsOfFrame } from '@sluice/rows'
import { namesIn } from '@sluice/rows/testing'

/** An add that the test acknowledges or fails. */
export interface PendingAdd {
  readonly chunkId: string
  readonly chunk: NewChunk
  readonly deadlineMs: number
  /** The names of the chunk's rows. */
  readonly names: readonly string[]
  readonly confirm: () => void
  readonly fail: (error: Error) => void
}

/** A queue in memory. Its adds wait for the test (`holding`), or are acknowledged at once. */
export class FakeQueue {
  readonly adds: PendingAdd[] = []
  /** The idempotency records by name. */
  readonly records = new Map<string, string>()
  /** The quotas that are used up, with the time in ms after which they have room again. */
  readonly usedUp = new Map<string, number>()
  holding: boolean

  constructor({ holding }: { holding: boolean }) {
    this.holding = holding
  }

  #add(chunkId: string, chunk: NewChunk, deadlineMs: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const names = namesIn(chunk.frame)
    this.adds.push({ chunkId, chunk, deadlineMs, names, confirm: resolve, fail: reject })
    if (!this.holding) resolve()
    return promise
  }

  /** Like `ChunkQueue.add`, but the records never expire. */
  async add(
    chunkId: string,
    chunk: NewChunk | undefined,
    deadlineMs: number,
    { records = [] }: { readonly records?: readonly QueueRecord[] } = {},
  ): Promise<FoundRecord[] | undefined> {
    const found = records.map(
      ({ name, text, quota }) =>
        this.records.get(name) ?? (text === undefined ? null : (this.usedUp.get(quota) ?? null)),
    )
    if (found.some((record) => record !== null)) return found
    if (chunk !== undefined) await this.#add(chunkId, chunk, deadlineMs)
    for (const { name, text } of records) if (text !== undefined) this.records.set(name, text)
    return undefined
  }

  get names(): string[] {
    return this.adds.flatMap(({ names }) => names)
  }

  /** The columns of each row. */
  get rows(): Record<string, string>[] {
    const rows = this.adds.flatMap(({ chunk }) => rowsOfFrame(chunk.frame))
    return rows.map((row) => JSON.parse(rowAsJson(row ?? '') ?? '') as Record<string, string>)
  }
}
