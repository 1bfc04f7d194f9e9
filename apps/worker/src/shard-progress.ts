import type { MonotonicClock } from '@sluice/runtime'
import type { Retrier } from './retrier.ts'

/** A step of a batch, or a request to the queue, that has not ended. */
interface RunningStep {
  readonly name: string
  readonly startedMs: number
}

/** What a shard was doing, for the log. Times are ms. */
export interface ProgressSnapshot {
  readonly heldChunks: number
  /** The steps that have not ended, by their names. */
  readonly steps: Readonly<Record<string, number>>
  readonly oldestStepMs: number
  /** Since the last step ended. */
  readonly silentMs: number
  /** Since the last fetch ended. */
  readonly sinceFetchMs: number
}

/** It consists of any number of inserts. */
const LONG_STEP = 'rejected'

/**
 * Records what a shard does, so that `ProgressWatchdog` can see that it does nothing. Three things must not last:
 *
 * - Work is known, and no step ends: a wake-up or a permit is lost, or a chunk is in hand and in no batch.
 * - A step does not end: something that it waits for never settles. Only inserting by parts may take any time.
 * - No fetch ends: the loop of the shard waits for something that never settles.
 *
 * The time of an external reason does not count: see `excuse`.
 */
export class ShardProgress {
  readonly #clock: Pick<MonotonicClock, 'nowMs'>
  readonly #heldChunks: () => number
  readonly #steps = new Set<RunningStep>()
  /** When a step ended, or there was nothing to do. */
  #aliveAtMs: number
  #fetchedAtMs: number
  #excusedAtMs = Number.NEGATIVE_INFINITY
  #isWaiting = false

  constructor(clock: Pick<MonotonicClock, 'nowMs'>, heldChunks: () => number) {
    this.#clock = clock
    this.#heldChunks = heldChunks
    this.#aliveAtMs = this.#fetchedAtMs = clock.nowMs()
  }

  /** Observes a step. @returns the same promise */
  track<T>(name: string, running: Promise<T>): Promise<T> {
    const step = { name, startedMs: this.#clock.nowMs() }
    this.#steps.add(step)
    const end = (): void => {
      this.#steps.delete(step)
      this.alive()
    }
    running.then(end, end)
    return running
  }

  /** The same retrier. Its failed attempts are an external reason: `/readyz` names them. */
  observeRetrier(retrier: Pick<Retrier, 'retry'>): Pick<Retrier, 'retry'> {
    return {
      retry: (failureMessage, run, giveUp) =>
        retrier.retry(
          failureMessage,
          async () => {
            try {
              return await run()
            } catch (error) {
              this.excuse()
              throw error
            } finally {
              this.alive()
            }
          },
          giveUp,
        ),
    }
  }

  alive(): void {
    this.#aliveAtMs = this.#clock.nowMs()
  }

  /** @param isWaiting whether chunks are waiting for which this worker has no room */
  fetched(isWaiting: boolean): void {
    this.#fetchedAtMs = this.#clock.nowMs()
    this.#isWaiting = isWaiting
    if (!this.#hasWork) this.alive()
  }

  /** Something outside of this worker has failed, or may have: the time until now does not count. */
  excuse(): void {
    this.#excusedAtMs = this.#clock.nowMs()
  }

  /** For how long something that must not last has lasted, ms. */
  get stalledMs(): number {
    return Math.max(this.silentMs, this.blockedMs)
  }

  /** For how long a step, or a fetch, has not ended, ms. */
  get blockedMs(): number {
    return this.#msSince(Math.min(this.#fetchedAtMs, this.#oldestStartMs))
  }

  /** For how long no step has ended although there is work, ms. */
  get silentMs(): number {
    return this.#hasWork ? this.#msSince(this.#aliveAtMs) : 0
  }

  /** Whether a step has ended in the last `ms`. */
  wasAliveWithin(ms: number): boolean {
    return this.#clock.nowMs() - this.#aliveAtMs <= ms
  }

  get snapshot(): ProgressSnapshot {
    const nowMs = this.#clock.nowMs()
    const steps = [...this.#steps]
    const byName = Object.entries(Object.groupBy(steps, ({ name }) => name))
    return {
      heldChunks: this.#heldChunks(),
      steps: Object.fromEntries(byName.map(([name, these = []]) => [name, these.length])),
      oldestStepMs: Math.round(Math.max(0, ...steps.map(({ startedMs }) => nowMs - startedMs))),
      silentMs: Math.round(nowMs - this.#aliveAtMs),
      sinceFetchMs: Math.round(nowMs - this.#fetchedAtMs),
    }
  }

  get #hasWork(): boolean {
    return this.#isWaiting || this.#heldChunks() > 0
  }

  get #oldestStartMs(): number {
    const short = [...this.#steps].filter(({ name }) => name !== LONG_STEP)
    return Math.min(Number.POSITIVE_INFINITY, ...short.map(({ startedMs }) => startedMs))
  }

  #msSince(ms: number): number {
    return this.#clock.nowMs() - Math.max(ms, this.#excusedAtMs)
  }
}
