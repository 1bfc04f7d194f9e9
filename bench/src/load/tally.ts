import { DurationHistogram } from '../measure/duration-histogram.ts'
import type { LoadResult } from './protocol.ts'

/** The end of a rejection is kept because its body contains the reason. */
const REJECTION_BYTES_MAX = 400

/** 200 is the response to OTLP. */
export function isAccepted(status: number): boolean {
  return status === 202 || status === 200
}

/** Counts the outcomes of a run's requests. */
export class Tally {
  readonly #latency = new DurationHistogram()
  readonly #cpuAtStart = process.cpuUsage()
  readonly #startedMs = performance.now()
  readonly #rejected: Record<string, number> = {}
  #accepted = 0
  #due = 0
  #unsent = 0
  #rejection: string | undefined
  #window: { readonly ms: number; readonly accepted: number } | undefined

  get accepted(): number {
    return this.#accepted
  }

  get slowestMs(): number {
    return this.#latency.percentileMs(100)
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
    if (isAccepted(status)) {
      this.#accepted += request.entries
    } else {
      this.#countRejected(String(status))
      this.#rejection ??= answer.toString('utf8', Math.max(0, answer.length - REJECTION_BYTES_MAX))
    }
  }

  /** A request that was due in the window but not sent by its end. It has waited at least until now. */
  unsent(dueMs: number, entries: number): void {
    this.#due += entries
    this.#unsent += entries
    this.#recordLatency(dueMs)
  }

  unanswered(dueMs: number): void {
    this.#recordLatency(dueMs)
    this.#countRejected('none')
  }

  /** No request is sent after this. */
  endWindow(): void {
    this.#window = { ms: performance.now() - this.#startedMs, accepted: this.#accepted }
  }

  result(): LoadResult {
    if (this.#window === undefined) throw new Error('the window has not ended')
    const { user, system } = process.cpuUsage(this.#cpuAtStart)
    const latency = (percentile: number): number => this.#latency.percentileMs(percentile)
    return {
      startedAtMs: performance.timeOrigin + this.#startedMs,
      windowMs: this.#window.ms,
      acceptedInWindow: this.#window.accepted,
      accepted: this.#accepted,
      due: this.#due,
      unsent: this.#unsent,
      rejected: this.#rejected,
      rejection: this.#rejection,
      latencyMs: { p50: latency(50), p99: latency(99), p999: latency(99.9), max: this.slowestMs },
      cpuMs: (user + system) / 1_000,
    }
  }

  #countRejected(status: string): void {
    this.#rejected[status] = (this.#rejected[status] ?? 0) + 1
  }

  #recordLatency(dueMs: number): void {
    this.#latency.record(performance.now() - dueMs)
  }
}
