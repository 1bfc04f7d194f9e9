import type { Readiness } from '@sluice/runtime'

/** A worker whose questions get no answer for this long is not alive. Longer than ClickHouse takes for a restart. */
const ALIVE_SILENCE_MAX_MS = 120_000
/**
 * An unanswered question says something about ClickHouse for this long. While something waits for ClickHouse, questions follow each other
 * in less than this time. While nothing waits, none are asked, and an old one must not count.
 */
const EVIDENCE_MAX_MS = 20_000

/**
 * Records whether ClickHouse answers, and derives from it whether a worker is ready and alive. An answer is whatever shows that
 * something is there: a refused connection and an error are answers too, since a restart of the worker would not help.
 *
 * Answering ⇄ silent (a question on a new connection had no answer). A worker that does not wait for ClickHouse is answering.
 */
export class ClickHouseMonitor {
  readonly #monotonicMs: () => number
  /** The queries without an answer that ClickHouse does not run. */
  readonly #lost = new Set<string>()
  #silence: { readonly sinceMs: number; readonly lastMs: number } | undefined

  /** @param monotonicMs a monotonic clock */
  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
  }

  /** Something was answered. */
  answered(): void {
    this.#silence = undefined
  }

  /** A question on a new connection had no answer. */
  silent(): void {
    const nowMs = this.#monotonicMs()
    this.#silence = { sinceMs: this.#currentSilence?.sinceMs ?? nowMs, lastMs: nowMs }
  }

  /** ClickHouse does not run a query that has no answer. Its connection may be silent. */
  lost(queryId: string): void {
    this.#lost.add(queryId)
  }

  /** The query ended or is running. */
  found(queryId: string): void {
    this.#lost.delete(queryId)
  }

  get readiness(): Readiness {
    const reasons = [
      ...(this.#currentSilence === undefined ? [] : ['ClickHouse does not answer on new connections']),
      ...(this.#lost.size === 0
        ? []
        : ['ClickHouse does not run queries that wait for its answer: their connections may be silent']),
    ]
    return { ready: reasons.length === 0, reasons }
  }

  /** False if ClickHouse has answered nothing for two minutes, while the worker waited for it. */
  get isAlive(): boolean {
    const silence = this.#currentSilence
    return silence === undefined || silence.lastMs - silence.sinceMs <= ALIVE_SILENCE_MAX_MS
  }

  get #currentSilence(): { readonly sinceMs: number; readonly lastMs: number } | undefined {
    const silence = this.#silence
    if (silence === undefined) return undefined
    return this.#monotonicMs() - silence.lastMs > EVIDENCE_MAX_MS ? undefined : silence
  }
}
