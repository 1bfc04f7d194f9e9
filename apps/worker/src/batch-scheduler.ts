import type { HeldChunk } from '@sluice/queue'
import type { BatchDelivery } from './batch-delivery.ts'
import type { Collector } from './collector.ts'
import { workerLimits } from './limits.ts'

/** Runs the collector on a clock: takes each batch when it is due and an insert may start, and delivers it. */
export class BatchScheduler {
  readonly #collector: Collector
  readonly #delivery: Pick<BatchDelivery, 'deliver'>
  readonly #monotonicMs: () => number
  /** The result of each chunk that is collected or in flight, by its id. */
  readonly #pending = new Map<string, PromiseWithResolvers<void>>()
  #batchesInFlight = 0
  #timer: NodeJS.Timeout | undefined

  constructor(
    collector: Collector,
    delivery: Pick<BatchDelivery, 'deliver'>,
    monotonicMs: () => number = () => performance.now(),
  ) {
    this.#collector = collector
    this.#delivery = delivery
    this.#monotonicMs = monotonicMs
  }

  /**
   * Resolves when the rows of the chunk are in ClickHouse and this is persisted.
   *
   * A worker that was too busy to renew its locks may fetch a chunk again that it still has in hand. The copy is not collected, since
   * a batch must not have a chunk twice. It gets the result of the first.
   */
  deliver(chunk: HeldChunk): Promise<void> {
    const inHand = this.#pending.get(chunk.id)
    if (inHand !== undefined) return inHand.promise
    const pending = Promise.withResolvers<void>()
    this.#pending.set(chunk.id, pending)
    this.#collector.add(chunk, this.#monotonicMs())
    this.#run()
    return pending.promise
  }

  /** Delivers the collected chunks without waiting for more. */
  flush(): void {
    this.#collector.flush()
    this.#run()
  }

  #run(): void {
    clearTimeout(this.#timer)
    while (this.#batchesInFlight < workerLimits.insertsInFlightMax) {
      const batch = this.#collector.take(this.#monotonicMs())
      if (batch === undefined) break
      void this.#deliverBatch(batch)
    }
    const { dueAtMs } = this.#collector
    if (dueAtMs === undefined || this.#batchesInFlight >= workerLimits.insertsInFlightMax) return
    this.#timer = setTimeout(() => this.#run(), Math.max(0, dueAtMs - this.#monotonicMs()))
  }

  async #deliverBatch(batch: readonly HeldChunk[]): Promise<void> {
    this.#batchesInFlight += 1
    try {
      const outcomes = await this.#delivery.deliver(batch)
      await Promise.all(batch.map(({ id }) => this.#settle(id, outcomes.get(id))))
    } catch (error) {
      for (const { id } of batch) this.#take(id)?.reject(error)
    } finally {
      this.#batchesInFlight -= 1
      this.#run()
    }
  }

  async #settle(id: string, outcome: Promise<void> | undefined): Promise<void> {
    try {
      await outcome
      this.#take(id)?.resolve()
    } catch (error) {
      this.#take(id)?.reject(error)
    }
  }

  #take(id: string): PromiseWithResolvers<void> | undefined {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    return pending
  }
}
