import type { Project } from '@sluice/projects'
import type { Logger } from '@sluice/runtime'
import { LRUCache } from 'lru-cache'
import { Allowance } from './allowance.ts'
import { resolveRateLimit, type RateLimit, type RateLimitDefaults } from './rate-limit.ts'
import type { SharedBuckets } from './shared-buckets.ts'

/** 10,000 of about 1 KB: 10 MB. A project that is let go of leases anew, which costs its next request a round trip. */
const PROJECTS_MAX = 10_000
/** A Redis that is away fails many leases a second; one line tells. */
const WARN_INTERVAL_MS = 10_000

/** The rate limits of the projects that send through this process. */
export class RateLimits {
  readonly #buckets: Pick<SharedBuckets, 'lease'>
  readonly #defaults: RateLimitDefaults
  readonly #logger: Logger
  readonly #now: () => number
  readonly #known = new LRUCache<string, KnownProject>({ max: PROJECTS_MAX })
  #warnedAtMs = Number.NEGATIVE_INFINITY

  /** @param now the clock of `performance.now()` */
  constructor(
    buckets: Pick<SharedBuckets, 'lease'>,
    defaults: RateLimitDefaults,
    logger: Logger,
    now: () => number = () => performance.now(),
  ) {
    this.#buckets = buckets
    this.#defaults = defaults
    this.#logger = logger
    this.#now = now
  }

  /** What the project may still send; null when it has no limit. Its limits are those of the record that is given. */
  of(project: Project): Allowance | null {
    const known = this.#known.get(project.id)
    // A record that did not change is the same object, as long as the authenticator caches it.
    if (known?.project === project) return known.allowance
    const limit = resolveRateLimit(project.limits ?? {}, this.#defaults)
    const allowance = limit === undefined ? null : (known?.allowance ?? this.#open(project.id, limit))
    if (limit !== undefined) allowance?.setLimit(limit)
    this.#known.set(project.id, { project, allowance })
    return allowance
  }

  #open(projectId: string, limit: RateLimit): Allowance {
    return new Allowance(
      limit,
      (current, request) => this.#buckets.lease(projectId, current, request),
      this.#now,
      (error) => this.#warn(error),
    )
  }

  #warn(error: unknown): void {
    const nowMs = this.#now()
    if (nowMs - this.#warnedAtMs < WARN_INTERVAL_MS) return
    this.#warnedAtMs = nowMs
    this.#logger.warn({ err: error }, 'rate limits are not shared, each process keeps to its part of them')
  }
}

interface KnownProject {
  readonly project: Project
  readonly allowance: Allowance | null
}
