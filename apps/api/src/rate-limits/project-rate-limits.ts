import type { Project } from '@sluice/projects'
import type { Logger } from '@sluice/runtime'
import { LRUCache } from 'lru-cache'
import { Allowance } from './allowance.ts'
import { resolveRateLimit } from './rate-limit.ts'
import type { RateLimitSettings } from './settings.ts'
import type { LeaseShared } from './shared-buckets.ts'

/** 10,000 of about 1 KB: 10 MB. The next request of an evicted project needs a new lease, which is one round trip. */
const PROJECTS_MAX = 10_000

/** The allowance of a project under the limits of the given record; null if the project has no limit. */
export type RateLimits = (project: Project) => Allowance | null

/** The rate limits of the projects that send through this process. */
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
