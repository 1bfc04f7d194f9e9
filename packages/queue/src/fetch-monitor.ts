import type { Readiness } from '@sluice/runtime'

/** A worker that gets no reply for this long is not ready. With the interval of health checks, operators learn it within 10 s. */
const READY_SILENCE_MAX_MS = 8_000
/** A worker that gets no reply for this long is not alive. Longer than Redis takes for a restart or a failover. */
const ALIVE_SILENCE_MAX_MS = 120_000

interface QueueState {
  /** When Redis last replied. */
  readonly answeredAtMs: number
  /** Why the last fetch failed, or the connection after it. */
  readonly failure?: string
}

/**
 * Records for each queue when Redis last replied to a fetch, and derives from it whether a worker is ready and alive. The state of
 * the connection does not show this: a connection may be open although nothing replies, and Redis may reject every fetch.
 */
export class FetchMonitor {
  readonly #monotonicMs: () => number
  readonly #queues = new Map<string, QueueState>()

  /** @param monotonicMs a monotonic clock */
  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
  }

  /** The queue is not ready until Redis replies. */
  started(queue: string): void {
    this.#queues.set(queue, { answeredAtMs: this.#monotonicMs(), failure: 'Redis has not answered yet' })
  }

  fetched(queue: string): void {
    if (this.#queues.has(queue)) this.#queues.set(queue, { answeredAtMs: this.#monotonicMs() })
  }

  /** A fetch or its connection failed. */
  failed(queue: string, { name, message }: Error): void {
    const state = this.#queues.get(queue)
    if (state === undefined) return
    const answeredAtMs = name === 'ReplyError' ? this.#monotonicMs() : state.answeredAtMs
    this.#queues.set(queue, { answeredAtMs, failure: message })
  }

  /** What happens to the queue from now on is ignored. */
  stopped(queue: string): void {
    this.#queues.delete(queue)
  }

  /** Why chunks of the queue are not fetched; undefined if they are. */
  failureOf(queue: string): string | undefined {
    const state = this.#queues.get(queue)
    if (state === undefined) return undefined
    const silentMs = this.#silentMs(state)
    const silence = `Redis has not answered for ${Math.floor(silentMs / 1_000)} s`
    return state.failure ?? (silentMs > READY_SILENCE_MAX_MS ? silence : undefined)
  }

  /** Not ready if the last fetch from any queue has failed, or has no reply. */
  get readiness(): Readiness {
    const reasons = [...this.#queues.keys()].flatMap((queue) => {
      const failure = this.failureOf(queue)
      return failure === undefined ? [] : [`chunks of ${queue} are not fetched: ${failure}`]
    })
    return { ready: reasons.length === 0, reasons }
  }

  /** False if Redis has not replied for any queue for two minutes. While it replies for one, a restart of the worker is useless. */
  get isAlive(): boolean {
    const states = [...this.#queues.values()]
    return states.length === 0 || states.some((state) => this.#silentMs(state) <= ALIVE_SILENCE_MAX_MS)
  }

  #silentMs({ answeredAtMs }: QueueState): number {
    return this.#monotonicMs() - answeredAtMs
  }
}
