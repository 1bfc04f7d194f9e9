import { covers, lesser, minus, plus } from '../../src/rate-limits/rate-limit.ts'
import type { LeaseRequest, LeaseShared } from '../../src/rate-limits/shared-buckets.ts'

/** A bucket in memory that does not refill: only the test changes its level. */
export class FakeBuckets {
  level = { entries: 0, bytes: 0 }
  /** All requests in order. */
  readonly requests: LeaseRequest[] = []
  /** Runs before the reply to each lease. An exception becomes the error of Redis. */
  beforeAnswer: () => Promise<void> = () => Promise.resolve()

  readonly lease: LeaseShared = async (_projectId, { burst }, request) => {
    this.requests.push(request)
    await this.beforeAnswer()
    this.level = lesser(burst, plus(this.level, request.back))
    const paid = request.costs.map((cost) => {
      const fits = covers(this.level, lesser(cost, burst))
      if (fits) this.level = minus(this.level, cost)
      return fits
    })
    const room = { entries: Math.max(0, this.level.entries), bytes: Math.max(0, this.level.bytes) }
    const ahead = paid.includes(false) ? { entries: 0, bytes: 0 } : lesser(request.ahead, room)
    this.level = minus(this.level, ahead)
    return { paid, ahead, level: this.level }
  }
}
