import type { Project } from '@sluice/projects'
import type { Logger } from '@sluice/runtime'
import { LRUCache } from 'lru-cache'
import { Allowance } from './allowance.ts'
import { resolveRateLimit, type RateLimit, type RateLimitDefaults } from './rate-limit.ts'
import type { SharedBuckets } from './shared-buckets.ts'

/** 10,000 of about 1 KB: 10 MB. The next request of an evicted project needs a new lease, which is one round trip. */
const PROJECTS_MAX = 10_000

/** The rate limits of the projects that send through this process. */
export class ProjectRateLimits {
  readonly #buckets: Pick<SharedBuckets, 'lease'>
  readonly #defaults: RateLimitDefaults
  readonly #logger: Logger
  readonly #monotonicMs: () => number
  readonly #known = new LRUCache<string, { readonly project: Project; readonly allowance: Allowance | null }>(
    {
      max: PROJECTS_MAX,
    },
  )

  constructor(
    buckets: Pick<SharedBuckets, 'lease'>,
    defaults: RateLimitDefaults,
    logger: Logger,
    monotonicMs: () => number = () => performance.now(),
  ) {
    this.#buckets = buckets
    this.#defaults = defaults
    this.#logger = logger
    this.#monotonicMs = monotonicMs
  }

  /** The allowance of the project under the limits of the given record; null if the project has no limit. */
  of(project: Project): Allowance | null {
    const known = this.#known.get(project.id)
    // The authenticator returns the same object for an unchanged record while it is cached.
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
      this.#monotonicMs,
      (error) => this.#logger.warn({ err: error }, 'redis cannot lease rate limits, requests pass on credit'),
    )
  }
}
