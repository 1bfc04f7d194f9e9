import type { Collector, HeldChunk } from './collector.ts'
import type { Delivery } from './delivery.ts'
import { workerLimits } from './limits.ts'

interface Waiting {
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** Drives the collector by the clock: takes each batch when it is due and an insert is free, and delivers it. */
export class Pump {
  readonly #collector: Collector
  readonly #delivery: Pick<Delivery, 'deliver'>
  readonly #waiting = new Map<string, Waiting>()
  #insertsInFlight = 0
  #timer: NodeJS.Timeout | undefined

  constructor(collector: Collector, delivery: Pick<Delivery, 'deliver'>) {
    this.#collector = collector
    this.#delivery = delivery
  }

  /** Resolves when the chunk's rows are in ClickHouse, and that is written down. */
  async deliver(chunk: HeldChunk): Promise<void> {
    const delivered = new Promise<void>((resolve, reject) => {
      this.#waiting.set(chunk.id, { resolve, reject })
    })
    this.#collector.add(chunk, performance.now())
    this.#run()
    await delivered
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

  #take(id: string): Waiting | undefined {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    return waiting
  }
}
