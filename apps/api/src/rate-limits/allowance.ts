import type { IncomingHttpHeaders } from 'node:http'
import { Problem } from '../problems.ts'
import { leaseLimits, sliceOf } from './lease-limits.ts'
import {
  type Amount,
  covers,
  isSameLimit,
  lesser,
  minus,
  nothing,
  plus,
  policyHeader,
  positive,
  type RateLimit,
  scaled,
  stateHeader,
  waitMs,
} from './rate-limit.ts'
import { estimateCost } from './request-cost.ts'
import type { Lease, LeaseRequest } from './shared-buckets.ts'

interface Waiter {
  readonly cost: Amount
  readonly resolve: () => void
  readonly reject: (problem: Problem) => void
}

/**
 * What one project may still send through this process: a slice of the project's bucket in Redis.
 *
 * In hand: a request that the slice covers is let through at once; when half of it is gone, more is leased in the
 * background. → Short: a request that needs more waits, with those that come meanwhile, for a lease that puts the slice
 * back and asks for them; what the bucket does not cover is refused. → Lacking (for `askIntervalMs` after a lease, longer
 * when the bucket is empty): what is surely not there is refused without asking. → In hand.
 *
 * Alone (Redis failed, or did not answer within `timeoutMs`): the process makes its own tokens: its part, by the number of
 * processes that were seen last, of what the bucket held then and of the rate since. It owes them to the bucket. Each
 * `retryMs` it asks; an answer, even a late one, ends it.
 */
export class Allowance {
  readonly #lease: (limit: RateLimit, request: LeaseRequest) => Promise<Lease>
  readonly #now: () => number
  readonly #onFailure: (error: unknown) => void
  #limit: RateLimit
  #policy: string
  #slice: Amount
  /** Taken out of the bucket, or made while alone, and not used. Below zero after a cost above the burst, alone. */
  #held = nothing
  #heldSinceMs = Number.NEGATIVE_INFINITY
  /** What was left in the bucket at the last lease, and when that was asked for. */
  #level: Amount
  #levelAtMs: number
  #lackingUntilMs = Number.NEGATIVE_INFINITY
  #processes = 1
  /** Made while alone and not yet told to the bucket. */
  #owed = nothing
  /** Until when tokens were made. Undefined while Redis answers. */
  #aloneAtMs: number | undefined
  #retryAtMs = 0
  #isAsking = false
  #waiters: Waiter[] = []
  /** The time of the latest request. */
  #atMs: number

  /**
   * @param lease asks the project's bucket
   * @param now the clock of `performance.now()`
   * @param onFailure is told why Redis could not be asked
   */
  constructor(
    limit: RateLimit,
    lease: (limit: RateLimit, request: LeaseRequest) => Promise<Lease>,
    now: () => number,
    onFailure: (error: unknown) => void,
  ) {
    this.#lease = lease
    this.#now = now
    this.#onFailure = onFailure
    this.#limit = limit
    this.#policy = policyHeader(limit)
    this.#slice = sliceOf(limit)
    this.#level = limit.burst
    this.#levelAtMs = now()
    this.#atMs = this.#levelAtMs
  }

  /** Takes effect at once, whatever was known to be lacking. */
  setLimit(limit: RateLimit): void {
    if (isSameLimit(limit, this.#limit)) return
    this.#limit = limit
    this.#policy = policyHeader(limit)
    this.#slice = sliceOf(limit)
    this.#held = lesser(this.#held, this.#slice)
    this.#lackingUntilMs = Number.NEGATIVE_INFINITY
  }

  /** The value of `RateLimit-Policy`. */
  get policy(): string {
    return this.#policy
  }

  /** The value of `RateLimit`, as of the latest request. */
  get state(): string {
    if (this.#aloneAtMs !== undefined) return stateHeader(this.#limit, this.#held)
    const sinceMs = Math.max(0, this.#atMs - this.#levelAtMs)
    const refilled = plus(this.#level, scaled(this.#limit.perSecond, sinceMs / 1_000))
    return stateHeader(this.#limit, plus(refilled, this.#held))
  }

  /**
   * Refuses a request whose body need not be read for it.
   *
   * @throws Problem `rate_limited`
   */
  refuseEarly(headers: IncomingHttpHeaders): void {
    const nowMs = this.#tick()
    if (this.#aloneAtMs === undefined && nowMs >= this.#lackingUntilMs) return
    const { least, most } = estimateCost(headers)
    const isCovered =
      this.#aloneAtMs === undefined
        ? covers(plus(this.#level, this.#held), lesser(this.#counted(least), this.#limit.burst))
        : covers(this.#held, lesser(this.#counted(least), this.#share))
    if (!isCovered) throw this.#refusal(this.#counted(most))
  }

  /**
   * Lets a request through, and counts it: at once, or after the one lease that it waits for.
   *
   * @returns undefined when it is let through at once
   * @throws Problem `rate_limited`, or rejects with it; then nothing was counted
   */
  take(cost: Amount): Promise<void> | undefined {
    const nowMs = this.#tick()
    const counted = this.#counted(cost)
    if (this.#aloneAtMs !== undefined) {
      this.#takeAlone(counted)
      return undefined
    }
    if (nowMs - this.#heldSinceMs < leaseLimits.sliceKeptMs && covers(this.#held, counted)) {
      this.#held = minus(this.#held, counted)
      if (this.#shouldLeaseAhead(nowMs)) this.#ask()
      return undefined
    }
    if (this.#isLacking(counted, nowMs)) throw this.#refusal(counted)
    return new Promise((resolve, reject) => {
      this.#waiters.push({ cost: counted, resolve, reject })
      this.#ask()
    })
  }

  #tick(): number {
    const nowMs = this.#now()
    this.#atMs = nowMs
    if (this.#aloneAtMs !== undefined) {
      this.#makeTokens(nowMs)
      if (nowMs >= this.#retryAtMs) this.#ask()
    }
    return nowMs
  }

  /** Nothing counts in a unit without limit. */
  #counted({ entries, bytes }: Amount): Amount {
    const { perSecond } = this.#limit
    return { entries: perSecond.entries === 0 ? 0 : entries, bytes: perSecond.bytes === 0 ? 0 : bytes }
  }

  #isLacking(cost: Amount, nowMs: number): boolean {
    return (
      nowMs < this.#lackingUntilMs && !covers(plus(this.#level, this.#held), lesser(cost, this.#limit.burst))
    )
  }

  #shouldLeaseAhead(nowMs: number): boolean {
    const half = scaled(this.#slice, 0.5)
    if (this.#isAsking || covers(this.#held, half)) return false
    return nowMs >= this.#lackingUntilMs || covers(this.#level, half)
  }

  #ask(): void {
    if (this.#isAsking) return
    this.#isAsking = true
    const waiters = this.#waiters.splice(0, leaseLimits.costsMax)
    const costs = waiters.map(({ cost }) => cost)
    const back = waiters.length === 0 ? nothing : this.#held
    const owed = this.#owed
    this.#held = minus(this.#held, back)
    this.#owed = nothing
    const ahead = positive(minus(this.#slice, this.#held))
    void this.#exchange({ back: minus(back, owed), costs, ahead }, waiters, owed)
  }

  /** One round trip. Those who wait for it are decided when it ends, or when it has taken too long. */
  async #exchange(request: LeaseRequest, waiters: readonly Waiter[], owed: Amount): Promise<void> {
    const sentMs = this.#now()
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      this.#onFailure(new Error('Redis did not answer in time'))
      this.#goAlone(waiters)
    }, leaseLimits.timeoutMs)
    let lease: Lease | undefined
    try {
      lease = await this.#lease(this.#limit, request)
    } catch (error) {
      this.#onFailure(error)
    }
    clearTimeout(timer)
    if (lease === undefined) {
      this.#owed = plus(this.#owed, owed)
      this.#goAlone(isLate ? [] : waiters)
    } else {
      this.#learn(lease, sentMs)
      if (isLate) this.#keepPaid(lease, request.costs)
      else this.#settle(lease, waiters)
    }
    this.#isAsking = false
    this.#decideNext()
  }

  #learn({ ahead, level, processes }: Lease, sentMs: number): void {
    this.#aloneAtMs = undefined
    this.#held = plus(this.#held, ahead)
    this.#heldSinceMs = sentMs
    this.#level = minus(level, this.#owed)
    this.#levelAtMs = sentMs
    this.#processes = processes
    const oneMs = waitMs(this.#limit, level, { entries: 1, bytes: 1 })
    this.#lackingUntilMs = sentMs + Math.max(leaseLimits.askIntervalMs, Math.min(leaseLimits.dryMsMax, oneMs))
  }

  #settle({ paid }: Lease, waiters: readonly Waiter[]): void {
    for (const [index, { cost, resolve, reject }] of waiters.entries()) {
      if (paid[index]) resolve()
      else reject(this.#refusal(cost))
    }
  }

  /** Those who waited were let through or refused while alone, with tokens that are owed: these are for others. */
  #keepPaid({ paid }: Lease, costs: readonly Amount[]): void {
    for (const [index, cost] of costs.entries()) if (paid[index]) this.#held = plus(this.#held, cost)
  }

  /** Decides those that came while a lease was under way, as far as that can be done without another one. */
  #decideNext(): void {
    const nowMs = this.#now()
    for (const waiter of this.#waiters.splice(0)) {
      if (covers(this.#held, waiter.cost)) {
        this.#held = minus(this.#held, waiter.cost)
        waiter.resolve()
      } else if (this.#isLacking(waiter.cost, nowMs)) waiter.reject(this.#refusal(waiter.cost))
      else this.#waiters.push(waiter)
    }
    if (this.#waiters.length > 0) this.#ask()
  }

  #goAlone(waiters: readonly Waiter[]): void {
    const nowMs = this.#now()
    if (this.#aloneAtMs === undefined) {
      this.#aloneAtMs = this.#levelAtMs
      this.#make(scaled(this.#level, 1 / this.#processes))
    }
    this.#makeTokens(nowMs)
    this.#retryAtMs = nowMs + leaseLimits.retryMs
    for (const { cost, resolve, reject } of [...waiters, ...this.#waiters.splice(0)]) {
      try {
        this.#takeAlone(cost)
        resolve()
      } catch (problem) {
        reject(problem as Problem)
      }
    }
  }

  /** What this process may have, and make, without asking: its part of the burst. */
  get #share(): Amount {
    return scaled(this.#limit.burst, 1 / this.#processes)
  }

  #makeTokens(nowMs: number): void {
    const seconds = (nowMs - (this.#aloneAtMs ?? nowMs)) / 1_000
    this.#aloneAtMs = nowMs
    this.#make(scaled(this.#limit.perSecond, seconds / this.#processes))
  }

  /** Makes tokens, as far as there is room for them in this process' part of the burst. */
  #make(amount: Amount): void {
    const made = positive(lesser(amount, minus(this.#share, this.#held)))
    this.#held = plus(this.#held, made)
    this.#owed = plus(this.#owed, made)
  }

  #takeAlone(cost: Amount): void {
    if (!covers(this.#held, lesser(cost, this.#share))) throw this.#refusal(cost)
    this.#held = minus(this.#held, cost)
  }

  /** The wait is what suffices in any process if nobody else sends: what is held here is not counted. */
  #refusal(cost: Amount): Problem {
    const { perSecond } = this.#limit
    const wait =
      this.#aloneAtMs === undefined
        ? waitMs(this.#limit, this.#level, cost)
        : waitMs({ perSecond: scaled(perSecond, 1 / this.#processes), burst: this.#share }, this.#held, cost)
    const seconds = Math.max(1, Math.ceil(wait / 1_000))
    const allowed = [
      ...(perSecond.entries === 0 ? [] : [`${perSecond.entries} entries`]),
      ...(perSecond.bytes === 0 ? [] : [`${perSecond.bytes} bytes`]),
    ]
    const detail = `The project may send ${allowed.join(' and ')} a second. Try again in ${seconds} s.`
    return new Problem('rate_limited', detail, { headers: { 'retry-after': String(seconds) } })
  }
}
