import type { ChunkConsumer, Fetch, HeldChunk } from '@sluice/queue'
import type { MonotonicClock, Semaphore } from '@sluice/runtime'
import type { BatchDelivery } from './batch-delivery.ts'
import { Collector, type HeldBudget, type HeldShare } from './collector.ts'
import type { WorkerConfig } from './config.ts'
import type { InsertHealth } from './insert-health.ts'
import { workerLimits } from './limits.ts'
import type { RejectedProjects } from './rejected-projects.ts'

/** How chunks are fetched. */
export const fetchLimits = {
  /** Time between two rounds while chunks arrive: a fraction of the time that rows wait in a batch anyway. */
  intervalMs: 20,
  /** The same while none arrive. An empty fetch costs Redis little and writes nothing to disk. */
  idleIntervalMs: 100,
  /** The same while another worker has the turn. If that worker dies, its turn expires after some seconds. */
  standbyIntervalMs: 1_000,
  /** The wait after a failed fetch, for example because Redis is out of memory. */
  failedIntervalMs: 1_000,
  /** Chunks per round. If more are waiting, the next round follows at once. */
  chunksPerRoundMax: 64,
} as const

export interface ShardOptions {
  readonly consumer: Pick<ChunkConsumer, 'fetch' | 'requeue' | 'forget' | 'heldChunks' | 'close'>
  readonly config: Pick<WorkerConfig, 'BATCH_ROWS_MAX' | 'BATCH_WAIT_MS'>
  readonly delivery: Pick<BatchDelivery, 'deliver' | 'close' | 'repairs' | 'chunksInRepair'>
  /** The insert slots of all shards. A slot is taken before the batch is claimed, so no claimed batch waits for one. */
  readonly insertSlots: Pick<Semaphore, 'run'>
  readonly health: Pick<InsertHealth, 'fetchMax' | 'probing' | 'giveUpSignal'>
  /** Held chunks of all shards. */
  readonly heldInAllShards: () => number
  readonly rejectedProjects: Pick<RejectedProjects, 'haveRowsIn'>
  readonly chunkBudget: Pick<HeldBudget, 'share'>
  readonly byteBudget: Pick<HeldBudget, 'share'>
  /** Inserts no rows, to learn whether ClickHouse accepts inserts. */
  readonly insertNothing: () => Promise<unknown>
  readonly clock: MonotonicClock
  /** `fetchLimits`, except in tests. */
  readonly fetchLimits: Readonly<Record<keyof typeof fetchLimits, number>>
}

/**
 * Delivers one shard's queue: fetches chunks in rounds, collects them into batches, and delivers each batch when it is due and an insert
 * slot is free. Running → stopping (fetches no more, delivers what is collected without waiting for more) → stopped (holds nothing).
 */
export class Shard {
  readonly #options: ShardOptions
  readonly #collector: Collector
  readonly #chunkShare: HeldShare
  readonly #byteShare: HeldShare
  readonly #stopping = new AbortController()
  readonly #running: Promise<void>
  readonly #delivering = new Set<Promise<void>>()
  #wake = new AbortController()
  /** Chunks that are collected, or in a new batch that is not finished. */
  #chunks = 0
  #bytes = 0
  #isWaitingForSlot = false
  #hasGivenUp = false

  constructor(options: ShardOptions) {
    const { config, chunkBudget, byteBudget } = options
    this.#options = options
    this.#collector = new Collector({
      chunksMax: workerLimits.batchChunksMax,
      rowsMax: config.BATCH_ROWS_MAX,
      bytesMax: workerLimits.batchBytesMax,
      waitMs: config.BATCH_WAIT_MS,
    })
    this.#chunkShare = chunkBudget.share()
    this.#byteShare = byteBudget.share()
    this.#running = this.#run()
  }

  get heldChunks(): number {
    return this.#options.consumer.heldChunks
  }

  /** Resolves when everything that was fetched is delivered or returned. */
  async stop(): Promise<void> {
    this.#collector.flush()
    this.#stopping.abort()
    this.#wake.abort()
    await this.#running
    await this.#options.delivery.close()
    await this.#options.consumer.close()
  }

  async #run(): Promise<void> {
    const { clock } = this.#options
    let fetchAtMs = Number.NEGATIVE_INFINITY
    while (!this.#isDone) {
      this.#wake = new AbortController()
      await this.#returnAfterGivingUp()
      if (!this.#isStopping && clock.nowMs() >= fetchAtMs) fetchAtMs = clock.nowMs() + (await this.#fetch())
      this.#deliverDue()
      if (!this.#isDone) await clock.sleep(this.#restMs(fetchAtMs), this.#wake.signal)
    }
  }

  /** The time until there is something to do. A free insert slot ends it earlier. */
  #restMs(fetchAtMs: number): number {
    const { clock, fetchLimits: limits } = this.#options
    const dueAtMs = this.#isWaitingForSlot ? undefined : this.#collector.dueAtMs
    const nextMs = Math.min(this.#isStopping ? Infinity : fetchAtMs, dueAtMs ?? Infinity)
    return Math.min(limits.standbyIntervalMs, Math.max(0, nextMs - clock.nowMs()))
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  get #isDone(): boolean {
    return this.#isStopping && this.#collector.isEmpty && this.#delivering.size === 0
  }

  /** @returns the time until the next round */
  async #fetch(): Promise<number> {
    const { consumer, health, heldInAllShards, rejectedProjects, clock, fetchLimits: limits } = this.#options
    const allowed = health.fetchMax(heldInAllShards())
    const count = Math.min(allowed, this.#room(), limits.chunksPerRoundMax)
    if (allowed === 1) health.probing()
    let fetch: Fetch | undefined
    try {
      fetch = await consumer.fetch(count, { isBusy: count === 0 || allowed === 1 || this.#isWaitingForSlot })
    } catch {
      // The consumer has logged what Redis rejects.
      return limits.failedIntervalMs
    }
    const chunks = fetch?.chunks ?? []
    for (const chunk of chunks) this.#collector.add(chunk, clock.nowMs(), rejectedProjects.haveRowsIn(chunk))
    this.#hold(chunks, 1)
    // Without a chunk, since another worker that cannot insert may have the turn.
    if (allowed === 1 && chunks.length === 0) await this.#options.insertNothing().catch(() => undefined)
    if (fetch === undefined || allowed === 0) return limits.standbyIntervalMs
    if (allowed === 1) return limits.idleIntervalMs
    if (fetch.hasMore && count > 0) return 0
    return chunks.length > 0 ? limits.intervalMs : limits.idleIntervalMs
  }

  /** How many more chunks may be fetched. */
  #room(): number {
    const { repairs, chunksInRepair } = this.#options.delivery
    if (repairs >= workerLimits.repairsWaitingMax || chunksInRepair >= workerLimits.chunksMax) return 0
    return this.#byteShare.room() > 0 ? this.#chunkShare.room() : 0
  }

  #hold(chunks: readonly HeldChunk[], sign: 1 | -1): void {
    this.#chunks += sign * chunks.length
    for (const { frame } of chunks) this.#bytes += sign * frame.length
    this.#chunkShare.set(this.#chunks)
    this.#byteShare.set(this.#bytes)
  }

  /** Waits for an insert slot if a batch is due. The batch is taken when the slot is free. */
  #deliverDue(): void {
    const { clock, insertSlots } = this.#options
    const { dueAtMs } = this.#collector
    if (this.#isWaitingForSlot || dueAtMs === undefined || dueAtMs > clock.nowMs()) return
    this.#isWaitingForSlot = true
    const delivering: Promise<void> = insertSlots
      .run(() => this.#deliver())
      // The process stops, and no slot became free.
      .catch(() => {
        this.#isWaitingForSlot = false
        return this.#returnCollected()
      })
      .finally(() => {
        // The shard may already wait for the slot of its next batch.
        this.#delivering.delete(delivering)
        this.#wake.abort()
      })
    this.#delivering.add(delivering)
  }

  async #deliver(): Promise<void> {
    const { clock, delivery } = this.#options
    // When the worker gives up, the slots of its failed inserts become free. Nothing else may be claimed in them.
    await this.#returnAfterGivingUp()
    const chunks = this.#collector.take(clock.nowMs())
    this.#isWaitingForSlot = false
    this.#wake.abort()
    if (chunks === undefined) return
    await delivery.deliver(chunks)
    this.#hold(chunks, -1)
  }

  /** Returns what is not claimed, once, when the worker gives up inserting. What is fetched afterwards is a probe. */
  async #returnAfterGivingUp(): Promise<void> {
    const { aborted } = this.#options.health.giveUpSignal
    if (aborted && !this.#hasGivenUp) await this.#returnCollected()
    this.#hasGivenUp = aborted
  }

  async #returnCollected(): Promise<void> {
    const { consumer } = this.#options
    const chunks = this.#collector.takeAll()
    if (chunks.length === 0) return
    const ids = chunks.map(({ id }) => id)
    this.#hold(chunks, -1)
    // If this fails, the stalled check returns them.
    await consumer.requeue(ids, 'front').catch(() => consumer.forget(ids))
  }
}
