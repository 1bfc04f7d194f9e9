import type { IncomingHttpHeaders } from 'node:http'
import { Problem } from '../problems.ts'
import {
  type Amount,
  covers,
  estimateCost,
  isSameLimit,
  lesser,
  minus,
  nothing,
  plus,
  policyHeader,
  positive,
  type RateLimit,
  rateLimitedDetail,
  scaled,
  stateHeader,
  waitMs,
} from './rate-limit.ts'
import { type Lease, leaseLimits, type LeaseRequest, sliceOf } from './shared-buckets.ts'

interface Waiter {
  readonly cost: Amount
  /** The part of the cost that was taken before. It stays taken if the request is rejected. */
  readonly paid: Amount
  /** What a retry may cost. */
  readonly whole: Amount
  readonly resolve: () => void
  readonly reject: (problem: Problem) => void
}

/**
 * What one project may still send through this process: a slice of the project's bucket in Redis.
 *
 * - Holding: a request that the slice covers passes at once. When half of the slice is used, more is leased in the
 *   background.
 * - Waiting: a request that the slice does not cover waits for a lease, together with requests that arrive later. The lease
 *   returns the slice to the bucket and pays for these requests. Those that the bucket does not cover are rejected.
 * - Lacking, for `leaseIntervalMs` after a lease, or longer if the bucket is empty: requests that the bucket certainly does
 *   not cover are rejected without a lease. Then it is holding again.
 * - Alone, after Redis failed or did not answer within `timeoutMs`: the process makes tokens without Redis, and owes them to
 *   the bucket. It makes its share of the last known level and of the rate since then; its share follows from the last known
 *   number of processes. It requests a lease every `retryMs`. An answer, even a late one, ends this mode.
 */
export class Allowance {
  readonly #lease: (limit: RateLimit, request: LeaseRequest) => Promise<Lease>
  readonly #monotonicMs: () => number
  readonly #onFailure: (error: unknown) => void
  #limit: RateLimit
  #policy: string
  #slice: Amount
  /** Tokens that were leased, or made while alone, and are not used. Alone, a cost above the burst makes it negative. */
  #held = nothing
  #heldSinceMs = Number.NEGATIVE_INFINITY
  /** The level of the bucket after the last lease, and the time at which that lease was requested. */
  #level: Amount
  #levelAtMs: number
  #lackingUntilMs = Number.NEGATIVE_INFINITY
  #processes = 1
  /** Tokens that were made while alone and are not yet deducted from the bucket. */
  #owed = nothing
  /** The time up to which tokens were made. Undefined while Redis answers. */
  #aloneAtMs: number | undefined
  #retryAtMs = 0
  #isLeasing = false
  #waiters: Waiter[] = []
  /** The time of the last request. */
  #atMs: number

  /**
   * @param lease leases from the bucket of the project
   * @param onFailure called with the reason when a lease fails or is late
   */
  constructor(
    limit: RateLimit,
    lease: (limit: RateLimit, request: LeaseRequest) => Promise<Lease>,
    monotonicMs: () => number,
    onFailure: (error: unknown) => void,
  ) {
    this.#lease = lease
    this.#monotonicMs = monotonicMs
    this.#onFailure = onFailure
    this.#limit = limit
    this.#policy = policyHeader(limit)
    this.#slice = sliceOf(limit)
    this.#level = limit.burst
    this.#levelAtMs = monotonicMs()
    this.#atMs = this.#levelAtMs
  }

  /** Takes effect at once, also while the bucket is lacking under the old limit. */
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

  /** The value of `RateLimit`, as of the last request. */
  get state(): string {
    if (this.#aloneAtMs !== undefined) return stateHeader(this.#limit, this.#held)
    const sinceMs = Math.max(0, this.#atMs - this.#levelAtMs)
    const refilled = plus(this.#level, scaled(this.#limit.perSecond, sinceMs / 1_000))
    return stateHeader(this.#limit, plus(refilled, this.#held))
  }

  /**
   * Rejects a request before its body is read, if its headers suffice for the decision.
   *
   * @throws Problem `rate_limited`
   */
  rejectEarly(headers: IncomingHttpHeaders): void {
    const nowMs = this.#tick()
    if (this.#aloneAtMs === undefined && nowMs >= this.#lackingUntilMs) return
    const { min, max } = estimateCost(headers)
    const isCovered =
      this.#aloneAtMs === undefined
        ? covers(plus(this.#level, this.#held), lesser(this.#counted(min), this.#limit.burst))
        : covers(this.#held, lesser(this.#counted(min), this.#share))
    if (!isCovered) throw this.#rejection(this.#counted(max))
  }

  /**
   * Lets a request pass and counts its cost, at once or after a lease.
   *
   * @param whole what the whole request may cost, if `cost` is a part of it: the wait of a rejection must suffice for a retry
   * @returns undefined if the request passes at once
   * @throws Problem `rate_limited`, or rejects with it; then no cost was counted
   */
  take(cost: Amount, whole: Amount = cost): Promise<void> | undefined {
    return this.#take(this.#counted(cost), nothing, this.#counted(whole))
  }

  /**
   * Counts the whole cost of a request that has paid a part of it. The request passes if one `take` of the whole cost would have let it
   * pass. If it does not, its part stays paid.
   *
   * @param cost includes `paid`
   * @param whole see `take`
   * @returns undefined if the request passes at once
   * @throws Problem `rate_limited`, or rejects with it
   */
  raise(paid: Amount, cost: Amount, whole: Amount = cost): Promise<void> | undefined {
    const counted = this.#counted(paid)
    this.#held = plus(this.#held, counted)
    return this.#take(this.#counted(cost), counted, this.#counted(whole))
  }

  /**
   * Counts the cost of a request that was rejected for another reason. What the slice does not cover becomes a debt, of at most one burst:
   * bodies that arrive together must not stop a project for long.
   */
  charge(cost: Amount): void {
    const nowMs = this.#tick()
    const { burst } = this.#limit
    const left = minus(this.#held, this.#counted(cost))
    this.#held = lesser(this.#held, minus(positive(plus(left, burst)), burst))
    if (this.#aloneAtMs === undefined && this.#shouldLeaseAhead(nowMs)) this.#requestLease()
  }

  #take(counted: Amount, paid: Amount, whole: Amount): Promise<void> | undefined {
    const nowMs = this.#tick()
    if (this.#aloneAtMs !== undefined) {
      this.#takeAlone(counted, paid, whole)
      return undefined
    }
    if (nowMs - this.#heldSinceMs < leaseLimits.sliceKeptMs && covers(this.#held, counted)) {
      this.#held = minus(this.#held, counted)
      if (this.#shouldLeaseAhead(nowMs)) this.#requestLease()
      return undefined
    }
    if (this.#isLacking(counted, nowMs)) throw this.#reject(whole, paid)
    return new Promise((resolve, reject) => {
      this.#waiters.push({ cost: counted, paid, whole, resolve, reject })
      this.#requestLease()
    })
  }

  #tick(): number {
    const nowMs = this.#monotonicMs()
    this.#atMs = nowMs
    if (this.#aloneAtMs !== undefined) {
      this.#makeTokens(nowMs)
      if (nowMs >= this.#retryAtMs) this.#requestLease()
    }
    return nowMs
  }

  /** A unit without a limit costs nothing. */
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
    if (this.#isLeasing || covers(this.#held, half)) return false
    return nowMs >= this.#lackingUntilMs || covers(this.#level, half)
  }

  #requestLease(): void {
    if (this.#isLeasing) return
    this.#isLeasing = true
    const waiters = this.#waiters.splice(0, leaseLimits.costsMax)
    const costs = waiters.map(({ cost }) => cost)
    const back = waiters.length === 0 ? nothing : this.#held
    const owed = this.#owed
    this.#held = minus(this.#held, back)
    this.#owed = nothing
    const ahead = positive(minus(this.#slice, this.#held))
    void this.#exchange({ back: minus(back, owed), costs, ahead }, waiters, owed)
  }

  /** One round trip. Its waiters are decided when it completes, or when it has taken too long. */
  async #exchange(request: LeaseRequest, waiters: readonly Waiter[], owed: Amount): Promise<void> {
    const sentMs = this.#monotonicMs()
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      this.#onFailure(new Error('Redis did not answer within the timeout'))
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
    this.#isLeasing = false
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
    this.#lackingUntilMs =
      sentMs + Math.max(leaseLimits.leaseIntervalMs, Math.min(leaseLimits.dryMsMax, oneMs))
  }

  #settle({ paid }: Lease, waiters: readonly Waiter[]): void {
    for (const [index, waiter] of waiters.entries()) {
      if (paid[index]) waiter.resolve()
      else waiter.reject(this.#reject(waiter.whole, waiter.paid))
    }
  }

  /** The waiters of a late lease were decided alone, with owed tokens. The tokens that were paid for them are now free. */
  #keepPaid({ paid }: Lease, costs: readonly Amount[]): void {
    for (const [index, cost] of costs.entries()) if (paid[index]) this.#held = plus(this.#held, cost)
  }

  /** Decides the requests that arrived while a lease was in flight, as far as possible without another lease. */
  #decideNext(): void {
    const nowMs = this.#monotonicMs()
    for (const waiter of this.#waiters.splice(0)) {
      if (covers(this.#held, waiter.cost)) {
        this.#held = minus(this.#held, waiter.cost)
        waiter.resolve()
      } else if (this.#isLacking(waiter.cost, nowMs)) waiter.reject(this.#reject(waiter.whole, waiter.paid))
      else this.#waiters.push(waiter)
    }
    if (this.#waiters.length > 0) this.#requestLease()
  }

  #goAlone(waiters: readonly Waiter[]): void {
    const nowMs = this.#monotonicMs()
    if (this.#aloneAtMs === undefined) {
      this.#aloneAtMs = this.#levelAtMs
      this.#make(scaled(this.#level, 1 / this.#processes))
    }
    this.#makeTokens(nowMs)
    this.#retryAtMs = nowMs + leaseLimits.retryMs
    for (const { cost, paid, whole, resolve, reject } of [...waiters, ...this.#waiters.splice(0)]) {
      try {
        this.#takeAlone(cost, paid, whole)
        resolve()
      } catch (problem) {
        reject(problem as Problem)
      }
    }
  }

  /** The share of the burst that this process may hold while alone. */
  get #share(): Amount {
    return scaled(this.#limit.burst, 1 / this.#processes)
  }

  #makeTokens(nowMs: number): void {
    const seconds = (nowMs - (this.#aloneAtMs ?? nowMs)) / 1_000
    this.#aloneAtMs = nowMs
    this.#make(scaled(this.#limit.perSecond, seconds / this.#processes))
  }

  /** Makes tokens, up to this process's share of the burst. */
  #make(amount: Amount): void {
    const made = positive(lesser(amount, minus(this.#share, this.#held)))
    this.#held = plus(this.#held, made)
    this.#owed = plus(this.#owed, made)
  }

  #takeAlone(cost: Amount, paid: Amount, whole: Amount): void {
    if (!covers(this.#held, lesser(cost, this.#share))) throw this.#reject(whole, paid)
    this.#held = minus(this.#held, cost)
  }

  /** The rejection of a request that has paid a part of its cost. */
  #reject(whole: Amount, paid: Amount): Problem {
    this.#held = minus(this.#held, paid)
    return this.#rejection(whole)
  }

  /**
   * If there are no other requests, the wait must suffice in every process. Tokens that only this process has do not count, but its
   * debts do.
   */
  #rejection(cost: Amount): Problem {
    const { perSecond } = this.#limit
    const wait =
      this.#aloneAtMs === undefined
        ? waitMs(this.#limit, plus(this.#level, lesser(this.#held, nothing)), cost)
        : waitMs({ perSecond: scaled(perSecond, 1 / this.#processes), burst: this.#share }, this.#held, cost)
    const seconds = Math.max(1, Math.ceil(wait / 1_000))
    return new Problem('rate_limited', rateLimitedDetail(this.#limit, seconds), {
      headers: { 'retry-after': String(seconds) },
    })
  }
}
