import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import type { LoadResult, Percentiles } from './protocol.ts'

/** Latencies are kept in µs, to three digits; two minutes are above every deadline here. */
const LATENCY_MAX_US = 120_000_000

/** Of an answer that is no 202, its end is kept: the body says why. */
const REFUSAL_BYTES_MAX = 400

/** Counts what becomes of a run's requests. */
export class Tally {
  readonly #latencyUs: RecordableHistogram = createHistogram({
    lowest: 1,
    highest: LATENCY_MAX_US,
    figures: 3,
  })
  readonly #cpuAtStart = process.cpuUsage()
  readonly #startedMs = performance.now()
  readonly #refused: Record<string, number> = {}
  #accepted = 0
  #due = 0
  #unsent = 0
  #refusal: string | undefined
  #window: { readonly ms: number; readonly accepted: number } | undefined

  get accepted(): number {
    return this.#accepted
  }

  sent(entries: number): void {
    this.#due += entries
  }

  answered(
    status: number,
    request: { readonly entries: number; readonly dueMs: number },
    answer: Buffer,
  ): void {
    this.#recordLatency(request.dueMs)
    if (status === 202) {
      this.#accepted += request.entries
    } else {
      this.#refuse(String(status))
      this.#refusal ??= answer.toString('utf8', Math.max(0, answer.length - REFUSAL_BYTES_MAX))
    }
  }

  /** A request that was due in the window, but not sent by its end: it waited at least until now. */
  unsent(dueMs: number, entries: number): void {
    this.#due += entries
    this.#unsent += entries
    this.#recordLatency(dueMs)
  }

  unanswered(dueMs: number): void {
    this.#recordLatency(dueMs)
    this.#refuse('none')
  }

  /** No request is sent from now on. */
  endWindow(): void {
    this.#window = { ms: performance.now() - this.#startedMs, accepted: this.#accepted }
  }

  result(): LoadResult {
    if (this.#window === undefined) throw new Error('the window has not ended')
    const { user, system } = process.cpuUsage(this.#cpuAtStart)
    return {
      startedAtMs: performance.timeOrigin + this.#startedMs,
      windowMs: this.#window.ms,
      acceptedInWindow: this.#window.accepted,
      accepted: this.#accepted,
      due: this.#due,
      unsent: this.#unsent,
      refused: this.#refused,
      refusal: this.#refusal,
      latencyMs: this.#percentiles(),
      cpuMs: (user + system) / 1_000,
    }
  }

  #refuse(status: string): void {
    this.#refused[status] = (this.#refused[status] ?? 0) + 1
  }

  #recordLatency(dueMs: number): void {
    const us = Math.round((performance.now() - dueMs) * 1_000)
    this.#latencyUs.record(Math.min(LATENCY_MAX_US, Math.max(1, us)))
  }

  #percentiles(): Percentiles {
    const at = (percentile: number): number =>
      this.#latencyUs.count === 0 ? 0 : this.#latencyUs.percentile(percentile) / 1_000
    return { p50: at(50), p99: at(99), p999: at(99.9), max: at(100) }
  }
}
