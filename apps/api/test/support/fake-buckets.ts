import { covers, lesser, minus, plus, type RateLimit } from '../../src/rate-limits/rate-limit.ts'
import type { Lease, LeaseRequest } from '../../src/rate-limits/shared-buckets.ts'

/** One bucket in memory that nothing flows into by itself: what a test puts there is what there is. */
export class FakeBuckets {
  level = { entries: 0, bytes: 0 }
  processes = 1
  /** All that was asked for, in order. */
  readonly requests: LeaseRequest[] = []
  /** Runs before each lease is answered; what it throws is Redis' error. */
  beforeAnswer: () => Promise<void> = () => Promise.resolve()

  async lease(_projectId: string, { burst }: RateLimit, request: LeaseRequest): Promise<Lease> {
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
    return { paid, ahead, level: this.level, processes: this.processes }
  }
}
