import type { Collector, HeldChunk } from './collector.ts'
import type { Delivery } from './delivery.ts'
import { workerLimits } from './limits.ts'

/** Drives the collector by the clock: takes each batch when it is due and an insert is free, and delivers it. */
export class Pump {
  readonly #collector: Collector
  readonly #delivery: Pick<Delivery, 'deliver'>
  /** What becomes of each chunk that is collected or on its way, by its id. */
  readonly #waiting = new Map<string, PromiseWithResolvers<void>>()
  #insertsInFlight = 0
  #timer: NodeJS.Timeout | undefined

  constructor(collector: Collector, delivery: Pick<Delivery, 'deliver'>) {
    this.#collector = collector
    this.#delivery = delivery
  }

  /**
   * Resolves when the chunk's rows are in ClickHouse, and that is written down.
   *
   * A worker that was too busy to renew its locks may be given a chunk again that it still has in hand. That copy is not
   * collected, for a batch must not hold a chunk twice: it waits for what becomes of the first.
   */
  deliver(chunk: HeldChunk): Promise<void> {
    const inHand = this.#waiting.get(chunk.id)
    if (inHand !== undefined) return inHand.promise
    const waiting = Promise.withResolvers<void>()
    this.#waiting.set(chunk.id, waiting)
    this.#collector.add(chunk, performance.now())
    this.#run()
    return waiting.promise
  }

  /** Sends what is collected without waiting for more. */
  flush(): void {
    this.#collector.flush()
    this.#run()
  }

  #run(): void {
    clearTimeout(this.#timer)
    while (this.#insertsInFlight < workerLimits.insertsInFlightMax) {
      const batch = this.#collector.take(performance.now())
      if (batch === undefined) break
      void this.#send(batch)
    }
    const { dueAtMs } = this.#collector
    if (dueAtMs === undefined || this.#insertsInFlight >= workerLimits.insertsInFlightMax) return
    this.#timer = setTimeout(() => this.#run(), Math.max(0, dueAtMs - performance.now()))
  }

  async #send(batch: readonly HeldChunk[]): Promise<void> {
    this.#insertsInFlight += 1
    try {
      const outcomes = await this.#delivery.deliver(batch)
      await Promise.all(batch.map(({ id }) => this.#settle(id, outcomes.get(id))))
    } catch (error) {
      for (const { id } of batch) this.#take(id)?.reject(error)
    } finally {
      this.#insertsInFlight -= 1
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
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    return waiting
  }
}
