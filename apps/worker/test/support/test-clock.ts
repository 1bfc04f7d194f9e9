import type { MonotonicClock } from '@sluice/runtime'
import { SimulatedTime } from '../../../../test/simulator/simulated-time.ts'

/** Longer than everything that the worker waits for. */
const SETTLE_MAX_MS = 3_600_000

/** Node's timers replace waits that are negative or longer than this by 1 ms. */
const TIMER_MAX_MS = 2 ** 31 - 1

/** A clock whose time passes only when the test lets it pass. */
export class TestClock implements MonotonicClock {
  readonly #time = new SimulatedTime()
  #jumpedMs = 0

  nowMs(): number {
    return this.#time.nowMs + this.#jumpedMs
  }

  /** Lets time pass without anything happening: the process is suspended. */
  jump(ms: number): void {
    this.#jumpedMs += ms
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (!(ms >= 0 && ms <= TIMER_MAX_MS)) throw new RangeError(`no timer waits for ${ms} ms`)
    return this.#time.sleep(ms, signal)
  }

  /** Runs something after `ms`. */
  after(ms: number, run: () => void): void {
    this.#time.after(ms, run)
  }

  /** Lets time pass, and everything happen that is due until then. With 0, everything that is due now. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.#time.nowMs + ms
    this.#time.after(ms, () => undefined)
    await this.#time.runUntil(() => false, untilMs)
  }

  /** Lets time pass until a promise settles. @returns its value */
  async settle<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false
    const settled = (): void => void (isSettled = true)
    promise.then(settled, settled)
    if (!(await this.#time.runUntil(() => isSettled, this.#time.nowMs + SETTLE_MAX_MS)))
      throw new Error('nothing settles the promise')
    return promise
  }
}
