import type { IncomingHttpHeaders } from 'node:http'
import { Problem } from '../problems.ts'
import {
  type Amount,
  covers,
  estimateCost,
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
import { type Lease, leaseLimits, type LeaseRequest, LocalBucket, sliceOf } from './shared-buckets.ts'

interface Costs {
  readonly cost: Amount
  /** The part of the cost that was taken before. It stays taken if the request is rejected. */
  readonly paid: Amount
  /** What a retry may cost. */
  readonly whole: Amount
}

interface Waiter extends Costs {
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
 * - On credit, when Redis has not replied to a lease within `timeoutMs`: requests pass at once and leave a debt of at most one
 *   burst, which the late lease or the next one settles. It is holding again after the lease.
 *
 * If Redis fails a lease, the process leases from a bucket of its own: each process then accepts at most the rate of the project.
 */
export class Allowance {
  readonly #lease: (limit: RateLimit, request: LeaseRequest) => Promise<Lease>
  readonly #monotonicMs: () => number
  readonly #onFailure: (error: unknown) => void
  readonly #localBucket = new LocalBucket()
  #limit: RateLimit
  #policy: string
  #slice: Amount
  /** Tokens that were leased and are not used. Below zero it is a debt: of a charge, or of requests that passed on credit. */
  #held = nothing
  #heldSinceMs = Number.NEGATIVE_INFINITY
  /** The level of the bucket after the last lease, and the time at which that lease was requested. */
  #level: Amount
  #levelAtMs: number
  #lackingUntilMs = Number.NEGATIVE_INFINITY
  #isLeasing = false
  #isOnCredit = false
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
    if (this.#tick() >= this.#lackingUntilMs) return
    const { min, max } = estimateCost(headers)
    if (!this.#mayCover(this.#counted(min))) throw this.#rejection(this.#counted(max))
  }

  /**
   * Lets a request pass and counts its cost, at once or after a lease.
   *
   * @param whole what the whole request may cost, if `cost` is a part of it: the wait of a rejection must suffice for a retry
   * @param paid the part of the cost that the request has paid. It passes if one `take` of the cost would have let it pass
   * @returns undefined if the request passes at once
   * @throws Problem `rate_limited`, or rejects with it; then only `paid` is counted
   */
  take(cost: Amount, whole: Amount = cost, paid: Amount = nothing): Promise<void> | undefined {
    const costs = { cost: this.#counted(cost), paid: this.#counted(paid), whole: this.#counted(whole) }
    const nowMs = this.#tick()
    this.#held = plus(this.#held, costs.paid)
    if (this.#isOnCredit) {
      const problem = this.#takeOnCredit(costs)
      if (problem !== undefined) throw problem
      return undefined
    }
    if (nowMs - this.#heldSinceMs < leaseLimits.sliceKeptMs && covers(this.#held, costs.cost)) {
      this.#held = minus(this.#held, costs.cost)
      if (this.#shouldLeaseAhead(nowMs)) this.#requestLease()
      return undefined
    }
    if (this.#isLacking(costs.cost, nowMs)) throw this.#reject(costs)
    return new Promise((resolve, reject) => {
      this.#waiters.push({ ...costs, resolve, reject })
      this.#requestLease()
    })
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
    if (this.#shouldLeaseAhead(nowMs)) this.#requestLease()
  }

  #tick(): number {
    this.#atMs = this.#monotonicMs()
    return this.#atMs
  }

  /** A unit without a limit costs nothing. */
  #counted({ entries, bytes }: Amount): Amount {
    const { perSecond } = this.#limit
    return { entries: perSecond.entries === 0 ? 0 : entries, bytes: perSecond.bytes === 0 ? 0 : bytes }
  }

  /** Whether the bucket may cover the cost, by what the last lease reported. A cost above the burst needs a full bucket. */
  #mayCover(cost: Amount): boolean {
    return covers(plus(this.#level, this.#held), lesser(cost, this.#limit.burst))
  }

  #isLacking(cost: Amount, nowMs: number): boolean {
    return nowMs < this.#lackingUntilMs && !this.#mayCover(cost)
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
    this.#held = minus(this.#held, back)
    const ahead = positive(minus(this.#slice, this.#held))
    void this.#exchange({ back, costs, ahead }, waiters)
  }

  /** One round trip. Its waiters are decided when it completes, or when it has taken too long. */
  async #exchange(request: LeaseRequest, waiters: readonly Waiter[]): Promise<void> {
    const sentMs = this.#monotonicMs()
    const timer = setTimeout(() => {
      this.#onFailure(new Error('Redis did not answer within the timeout'))
      this.#isOnCredit = true
      for (const waiter of [...waiters, ...this.#waiters.splice(0)]) {
        const problem = this.#takeOnCredit(waiter)
        if (problem === undefined) waiter.resolve()
        else waiter.reject(problem)
      }
    }, leaseLimits.timeoutMs)
    const lease = await this.#lease(this.#limit, request).catch((error: unknown) => {
      this.#onFailure(error)
      return this.#localBucket.lease(this.#limit, request, this.#monotonicMs())
    })
    clearTimeout(timer)
    const wasLate = this.#isOnCredit
    this.#isOnCredit = false
    this.#isLeasing = false
    this.#learn(lease, sentMs)
    if (wasLate) this.#keepPaid(lease, request.costs)
    else this.#settle(lease, waiters)
    this.#decideNext()
  }

  #learn({ ahead, level }: Lease, sentMs: number): void {
    this.#held = plus(this.#held, ahead)
    this.#heldSinceMs = sentMs
    this.#level = level
    this.#levelAtMs = sentMs
    const oneMs = waitMs(this.#limit, level, { entries: 1, bytes: 1 })
    this.#lackingUntilMs =
      sentMs + Math.max(leaseLimits.leaseIntervalMs, Math.min(leaseLimits.dryMsMax, oneMs))
  }

  #settle({ paid }: Lease, waiters: readonly Waiter[]): void {
    for (const [index, waiter] of waiters.entries()) {
      if (paid[index]) waiter.resolve()
      else waiter.reject(this.#reject(waiter))
    }
  }

  /** The waiters of a late lease have passed on credit, or were rejected. What was paid for them reduces the debt. */
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
      } else if (this.#isLacking(waiter.cost, nowMs)) waiter.reject(this.#reject(waiter))
      else this.#waiters.push(waiter)
    }
    if (this.#waiters.length > 0) this.#requestLease()
  }

  /** @returns the rejection of a request that the credit does not cover */
  #takeOnCredit(costs: Costs): Problem | undefined {
    const { burst } = this.#limit
    if (!covers(plus(this.#held, burst), lesser(costs.cost, burst))) return this.#reject(costs)
    this.#held = minus(this.#held, costs.cost)
    return undefined
  }

  /** The rejection of a request that has paid a part of its cost. */
  #reject({ whole, paid }: Costs): Problem {
    this.#held = minus(this.#held, paid)
    return this.#rejection(whole)
  }

  /**
   * If there are no other requests, the wait must suffice in every process. Tokens that only this process has do not count, but its
   * debts do.
   */
  #rejection(cost: Amount): Problem {
    const wait = waitMs(this.#limit, plus(this.#level, lesser(this.#held, nothing)), cost)
    const seconds = Math.max(1, Math.ceil(wait / 1_000))
    return new Problem('rate_limited', rateLimitedDetail(this.#limit, seconds), {
      headers: { 'retry-after': String(seconds) },
    })
  }
}
