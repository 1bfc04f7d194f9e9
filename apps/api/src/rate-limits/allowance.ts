import type { Project } from '@sluice/projects'
import { type Logger, withTimeout } from '@sluice/runtime'
import { LRUCache } from 'lru-cache'
import type { IncomingHttpHeaders } from 'node:http'
import { type Problem, retryAfter } from '../problems.ts'
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
  type RateLimitSettings,
  resolveRateLimit,
  scaled,
  stateHeader,
  waitMs,
} from './rate-limit.ts'
import { type Lease, leaseLimits, type LeaseRequest, type LeaseShared, sliceOf } from './shared-buckets.ts'

interface Costs {
  readonly cost: Amount
  /** The part of the cost that was taken before. It stays taken if the request is rejected. */
  readonly paid: Amount
  /** What a retry may cost. */
  readonly whole: Amount
}

interface Waiter extends Costs, PromiseWithResolvers<void> {}

type LeaseOfProject = (limit: RateLimit, request: LeaseRequest) => Promise<Lease>

/**
 * What one project may still send through this process: a slice of the project's bucket in Redis.
 *
 * - Holding: a request that the slice covers passes at once. When half of the slice is used, more is leased in the
 *   background.
 * - Waiting: a request that the slice does not cover waits for a lease, together with requests that arrive later. The lease
 *   returns the slice to the bucket and pays for these requests. Those that the bucket does not cover are rejected.
 * - Lacking, for `leaseIntervalMs` after a lease, or longer if the bucket is empty: requests that the bucket certainly does
 *   not cover are rejected without a lease. Then it is holding again.
 *
 * If Redis fails a lease, or does not reply within `timeoutMs`, the process goes on from the last known level on its own: each process then
 * accepts at most the rate of the project. A late reply is ignored: Redis has charged for it what the process has granted. What the process
 * grants until then is deducted later.
 */
export class Allowance {
  readonly #lease: LeaseOfProject
  readonly #monotonicMs: () => number
  readonly #onFailure: (error: unknown) => void
  #limit: RateLimit
  /** The value of `RateLimit-Policy`. */
  policy: string
  #slice: Amount
  /** Tokens that were leased and are not used. Below zero it is a debt of a charge. */
  #held = nothing
  /** The level of the bucket after the last lease, and the time at which that lease was requested. A bucket is full at first. */
  #level: Amount
  #leasedAtMs: number
  #lackingUntilMs = Number.NEGATIVE_INFINITY
  #isLeasing = false
  /** Redis has not replied to a lease. Until it does, no further lease is sent: on a silent connection they would pile up. */
  #isUnanswered = false
  /** What this process granted meanwhile. The next lease deducts it from the bucket, at most one burst. */
  #owed = nothing
  #waiters: Waiter[] = []

  /** @param onFailure called with the reason when a lease fails or is late */
  constructor(
    limit: RateLimit,
    lease: LeaseOfProject,
    monotonicMs: () => number,
    onFailure: (error: unknown) => void,
  ) {
    this.#lease = lease
    this.#monotonicMs = monotonicMs
    this.#onFailure = onFailure
    this.#limit = limit
    this.policy = policyHeader(limit)
    this.#slice = sliceOf(limit)
    this.#level = limit.burst
    this.#leasedAtMs = monotonicMs()
  }

  /** Takes effect at once, also while the bucket is lacking under the old limit. */
  setLimit(limit: RateLimit): void {
    this.#limit = limit
    this.policy = policyHeader(limit)
    this.#slice = sliceOf(limit)
    this.#held = lesser(this.#held, this.#slice)
    this.#lackingUntilMs = Number.NEGATIVE_INFINITY
  }

  /** The value of `RateLimit`. */
  get state(): string {
    return stateHeader(this.#limit, plus(this.#refilled(this.#monotonicMs()), this.#held))
  }

  /** The level of the bucket if no other process leases from it. */
  #refilled(nowMs: number): Amount {
    return plus(this.#level, scaled(this.#limit.perSecond, (nowMs - this.#leasedAtMs) / 1_000))
  }

  /** Rejects a request before its body is read, if its headers suffice for the decision. @throws Problem `rate_limited` */
  rejectEarly(headers: IncomingHttpHeaders): void {
    if (this.#monotonicMs() >= this.#lackingUntilMs) return
    const { min, max } = estimateCost(headers)
    if (!this.#mayCover(this.#counted(min))) throw this.#reject({ whole: this.#counted(max), paid: nothing })
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
    const nowMs = this.#monotonicMs()
    this.#held = plus(this.#held, costs.paid)
    if (nowMs - this.#leasedAtMs < leaseLimits.sliceKeptMs && covers(this.#held, costs.cost)) {
      this.#held = minus(this.#held, costs.cost)
      if (this.#shouldLeaseAhead(nowMs)) this.#requestLease()
      return undefined
    }
    if (this.#isLacking(costs.cost, nowMs)) throw this.#reject(costs)
    const waiter = { ...costs, ...Promise.withResolvers<void>() }
    this.#waiters.push(waiter)
    this.#requestLease()
    return waiter.promise
  }

  /**
   * Counts the cost of a request that was rejected for another reason. What the slice does not cover becomes a debt, of at most one burst:
   * bodies that arrive together must not stop a project for long.
   */
  charge(cost: Amount): void {
    const { burst } = this.#limit
    const left = minus(this.#held, this.#counted(cost))
    this.#held = lesser(this.#held, minus(positive(plus(left, burst)), burst))
    if (this.#shouldLeaseAhead(this.#monotonicMs())) this.#requestLease()
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

  /** One round trip, at most. Its waiters are decided when it completes. */
  async #exchange(request: LeaseRequest, waiters: readonly Waiter[]): Promise<void> {
    const sentMs = this.#monotonicMs()
    const lease = this.#isUnanswered
      ? this.#leaseUnsent(request, sentMs)
      : await this.#leaseShared(request, sentMs)
    this.#isLeasing = false
    this.#held = plus(this.#held, lease.ahead)
    this.#level = lease.level
    this.#leasedAtMs = sentMs
    const oneMs = waitMs(this.#limit, lease.level, { entries: 1, bytes: 1 })
    this.#lackingUntilMs =
      sentMs + Math.max(leaseLimits.leaseIntervalMs, Math.min(leaseLimits.dryMsMax, oneMs))
    for (const [index, waiter] of waiters.entries()) {
      if (lease.paid[index]) waiter.resolve()
      else waiter.reject(this.#reject(waiter))
    }
    this.#decideNext()
  }

  async #leaseShared(request: LeaseRequest, sentMs: number): Promise<Lease> {
    const back = minus(request.back, this.#owed)
    this.#owed = nothing
    this.#isUnanswered = true
    const lease = this.#lease(this.#limit, { ...request, back }).finally(() => (this.#isUnanswered = false))
    return withTimeout(lease, leaseLimits.timeoutMs).catch((error: unknown) => {
      this.#onFailure(error)
      return this.#leaseLocally(request, sentMs)
    })
  }

  #leaseUnsent(request: LeaseRequest, nowMs: number): Lease {
    const lease = this.#leaseLocally(request, nowMs)
    const costs = request.costs.filter((_cost, index) => lease.paid[index])
    const granted = costs.reduce(plus, minus(lease.ahead, request.back))
    this.#owed = lesser(plus(this.#owed, granted), this.#limit.burst)
    return lease
  }

  /** What Redis would do, without the leases of other processes. */
  #leaseLocally({ back, costs, ahead }: LeaseRequest, nowMs: number): Lease {
    const { burst } = this.#limit
    let level = lesser(burst, plus(this.#refilled(nowMs), back))
    const paid = costs.map((cost) => {
      const fits = covers(level, lesser(cost, burst))
      if (fits) level = minus(level, cost)
      return fits
    })
    const granted = paid.includes(false) ? nothing : lesser(ahead, positive(level))
    return { paid, ahead: granted, level: minus(level, granted) }
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

  /**
   * The rejection of a request. If there are no others, the wait must suffice in every process. Tokens that only this process has do not
   * count, but its debts do.
   */
  #reject({ whole, paid }: Pick<Costs, 'whole' | 'paid'>): Problem {
    this.#held = minus(this.#held, paid)
    const wait = waitMs(this.#limit, plus(this.#level, lesser(this.#held, nothing)), whole)
    const seconds = Math.max(1, Math.ceil(wait / 1_000))
    return retryAfter('rate_limited', seconds, rateLimitedDetail(this.#limit, seconds))
  }
}

/** 10,000 of about 1 KB: 10 MB. The next request of an evicted project needs a new lease, which is one round trip. */
const PROJECTS_MAX = 10_000

/** The allowance of a project under the limits of the given record; null if the project has no limit. */
export type RateLimits = (project: Project) => Allowance | null

export function projectRateLimits(
  lease: LeaseShared,
  defaults: RateLimitSettings,
  logger: Logger,
  monotonicMs: () => number = () => performance.now(),
): RateLimits {
  const allKnown = new LRUCache<string, { project: Project; allowance: Allowance | null }>({
    max: PROJECTS_MAX,
  })
  const onFailure = (error: unknown): void =>
    logger.warn({ err: error }, 'redis cannot lease rate limits, this process counts on its own')
  return (project) => {
    const known = allKnown.get(project.id)
    // The authenticator returns the same object for an unchanged record while it is cached.
    if (known?.project === project) return known.allowance
    const limit = resolveRateLimit(project.limits ?? {}, defaults)
    let allowance: Allowance | null = null
    if (limit !== undefined) {
      allowance =
        known?.allowance ??
        new Allowance(limit, (...request) => lease(project.id, ...request), monotonicMs, onFailure)
      allowance.setLimit(limit)
    }
    allKnown.set(project.id, { project, allowance })
    return allowance
  }
}
