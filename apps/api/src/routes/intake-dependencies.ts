import type { Authenticator } from '../authentication/authenticator.ts'
import type { ChunkWriter } from '../chunks/chunk-writer.ts'
import type { Idempotency } from '../idempotency/idempotency.ts'
import type { ContentDecoder } from '../intake/content-encoding.ts'
import type { Intake } from '../intake/intake.ts'
import type { RequestCounts } from '../metrics/request-counts.ts'
import type { BodyBudget } from '../overload/body-budget.ts'
import type { OverloadMonitor } from '../overload/overload-monitor.ts'
import type { ProjectRateLimits } from '../rate-limits/project-rate-limits.ts'
import type { RequestTraces } from '../traces/request-traces.ts'
import type { Turns } from '../turns.ts'

/** What every route that takes entries needs. */
export interface IntakeDependencies {
  readonly authenticator: Authenticator
  readonly rateLimits: ProjectRateLimits
  readonly intake: Intake
  readonly writer: ChunkWriter
  readonly idempotency: Idempotency
  readonly overload: Pick<OverloadMonitor, 'check' | 'reject'>
  readonly bodies: BodyBudget
  readonly decoder: ContentDecoder
  readonly counts: RequestCounts
  /** For work that many requests may cause at once. */
  readonly turns: Turns
  /** The clock of all API processes: rows expire by it. It may throw ClockError. */
  readonly wallMs: () => number
  /**
   * Undefined if traces are off. Then `request.span` is always null, and a request only costs the branches that test it: no hook, no
   * closure and no object of it exists for traces.
   */
  readonly traces?: RequestTraces | undefined
}
