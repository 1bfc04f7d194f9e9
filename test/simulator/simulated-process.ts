import { type Random } from '@sluice/harness'
import type { MonotonicClock } from '@sluice/runtime'
import type { SimulatedTime } from './simulated-time.ts'

/** What can go wrong on the way to a server. Each is a probability. */
export interface LinkFaults {
  /** The connection fails before the server sees the request. */
  readonly refused: number
  /** The server handles the request, and its response is lost. */
  readonly answerLost: number
  /** The request arrives minutes later, after the caller was told that it failed. */
  readonly delayed: number
}

const DELAY_MAX_MS = 600_000

export interface Link {
  readonly faults: () => LinkFaults
  /** Whether the process reaches the server now. */
  readonly reaches: () => boolean
  /** Whether the server acknowledges what it handles now. */
  readonly answers: () => boolean
  /** How late a delayed request may arrive. Default: ten minutes, longer than any time-out. */
  readonly delayMaxMs?: number
  /** Called immediately before a delayed request arrives. */
  readonly beforeArrival?: () => void
}

const LATENCY_MAX_MS = 3
/** A request without a response fails after this time. */
const TIMEOUT_MS = 5_000

/**
 * A process that can be killed, and suspended for any time. It is the clock of the code that runs in it. After its death none of its timers fires,
 * and none of its requests returns. While it is suspended they wait.
 */
export class SimulatedProcess implements MonotonicClock {
  readonly name: string
  readonly #time: SimulatedTime
  readonly #random: Random
  readonly #note: (event: string) => void
  isDead = false
  #resumed: PromiseWithResolvers<void> | undefined
  #ambush: { requests: number; readonly prefix: string; readonly spring: () => void } | undefined

  /** @param note adds an event to the trace */
  constructor(name: string, time: SimulatedTime, random: Random, note: (event: string) => void) {
    this.name = name
    this.#note = note
    this.#time = time
    this.#random = random
  }

  nowMs(): number {
    return this.#time.nowMs
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    await this.#time.sleep(ms, signal)
    await this.#turn()
  }

  kill(): void {
    this.isDead = true
  }

  /** Suspends it until `resume`, or for this time at most. */
  suspend(ms: number): void {
    if (this.#resumed !== undefined) return
    const resumed = Promise.withResolvers<void>()
    this.#resumed = resumed
    this.#time.after(ms, () => {
      if (this.#resumed === resumed) this.resume()
    })
  }

  resume(): void {
    const resumed = this.#resumed
    this.#resumed = undefined
    resumed?.resolve()
  }

  /** Makes something happen to this process immediately before it sends its nth request from now on whose name begins with `prefix`. */
  beforeRequest(requests: number, prefix: string, spring: () => void): void {
    this.#ambush = { requests, prefix, spring }
  }

  /**
   * Sends a request to a server.
   *
   * @param name what it is, for the trace
   * @param handle what the server does: one atomic step
   * @throws if the request or its response is lost; and what `handle` throws
   */
  async request<T>(
    name: string,
    handle: () => T,
    { faults, reaches, answers, delayMaxMs = DELAY_MAX_MS, beforeArrival }: Link,
  ): Promise<T> {
    this.#countRequest(name)
    await this.#turn()
    await this.#time.sleep(this.#random() * LATENCY_MAX_MS)
    const dice = this.#random()
    const { refused, delayed, answerLost } = faults()
    if (!reaches() || dice < refused) return this.#fail(name, 'connection refused')
    if (dice < refused + delayed) {
      this.#time.after(this.#random() * delayMaxMs, () => {
        beforeArrival?.()
        this.#note(`${this.name}: ${name} arrives`)
        settle(handle)
      })
      await this.#time.sleep(TIMEOUT_MS)
      return this.#fail(name, 'no answer')
    }
    const result = settle(handle)
    const isLost = !answers() || dice < refused + delayed + answerLost
    await this.#time.sleep(this.#random() * LATENCY_MAX_MS)
    if (isLost || !reaches()) return this.#fail(name, 'connection reset')
    this.#note(`${this.name}: ${name}${'error' in result ? `: ${String(result.error)}` : ''}`)
    await this.#turn()
    if ('error' in result) throw result.error
    return result.value
  }

  #countRequest(name: string): void {
    if (this.#ambush === undefined || !name.startsWith(this.#ambush.prefix)) return
    this.#ambush.requests -= 1
    if (this.#ambush.requests > 0) return
    const { spring } = this.#ambush
    this.#ambush = undefined
    spring()
  }

  async #fail(name: string, message: string): Promise<never> {
    this.#note(`${this.name}: ${name}: ${message}`)
    await this.#turn()
    throw new Error(message)
  }

  /** Waits until the process may go on: forever if it is dead. */
  #turn(): Promise<void> | undefined {
    return this.isDead || this.#resumed !== undefined ? this.#wait() : undefined
  }

  async #wait(): Promise<void> {
    while (this.#resumed !== undefined) await this.#resumed.promise
    if (this.isDead) await new Promise(() => undefined)
  }
}

function settle<T>(run: () => T): { readonly value: T } | { readonly error: unknown } {
  try {
    return { value: run() }
  } catch (error) {
    return { error }
  }
}
