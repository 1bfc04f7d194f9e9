import type { Logger } from '@sluice/runtime'
import { limits } from '@sluice/schema'
import type { Problem } from '../problems.ts'
import { retryLater } from './retry-later.ts'

/** How many bytes of bodies one process may hold, of all projects and of one. */
export interface BodyLimits {
  readonly bytesMax: number
  readonly projectBytesMax: number
}

/** What a record of a shipper takes besides its row: its item in an answer, or why it is rejected. Without it, 15 bytes of a body took 190. */
export const RECORD_BYTES = 256

/**
 * A compressed body is held together with the decoded one, and that of a shipper together with its rows and records. With lower limits, a
 * valid request would never fit.
 */
export const BODY_LIMITS_MIN =
  2 * limits.bodyBytesMax + limits.rowBytesPerRequestMax + limits.recordsPerRequestMax * RECORD_BYTES

/** The bodies of one project. */
export interface ProjectBodies {
  bytes: number
}

/** A request, and what is held for it. */
export interface BodyHolder {
  readonly project: { readonly id: string } | null
  projectBodies: ProjectBodies | null
  bodyBytes: number
}

/** Most bodies arrive within a second. */
const RETRY_AFTER_S = { min: 1, max: 3 }
/** Projects without bodies are forgotten when there are more. 10,000 of about 100 bytes: 1 MB. */
const PROJECTS_MAX = 10_000
const WARN_INTERVAL_MS = 10_000

export interface BodyBudgetOptions {
  readonly limits: BodyLimits
  readonly logger: Logger
  /** 0 ≤ random < 1 */
  readonly random: () => number
  readonly monotonicMs: () => number
}

/** The part of the page `/overload` that is about bodies. */
export interface BodyStatus extends BodyLimits {
  readonly bytes: number
  /** Number of requests rejected since the process started. */
  readonly rejected: number
}

/**
 * Counts the bytes of bodies from their arrival until their requests are answered, so that slow senders cannot fill the memory.
 * A request that does not fit is rejected. Others are not affected: one project alone cannot use all of the memory.
 */
export class BodyBudget {
  readonly #options: BodyBudgetOptions
  readonly #projects = new Map<string, ProjectBodies>()
  #bytes = 0
  #rejected = 0
  #warnedAtMs = Number.NEGATIVE_INFINITY

  constructor(options: BodyBudgetOptions) {
    this.#options = options
  }

  /** Whether further bytes of an authenticated request fit. */
  fits(request: BodyHolder, bytes: number): boolean {
    const { bytesMax, projectBytesMax } = this.#options.limits
    return this.#bytes + bytes <= bytesMax && this.#bodiesOf(request).bytes + bytes <= projectBytesMax
  }

  /** Holds further bytes for a request, until `release`. False if they do not fit; then nothing changes. */
  hold(request: BodyHolder, bytes: number): boolean {
    if (!this.fits(request, bytes)) return false
    this.#bodiesOf(request).bytes += bytes
    this.#bytes += bytes
    request.bodyBytes += bytes
    return true
  }

  /** Releases what is held for a request. */
  release(request: BodyHolder): void {
    const { projectBodies, bodyBytes } = request
    if (projectBodies !== null) projectBodies.bytes -= bodyBytes
    this.#bytes -= bodyBytes
    request.bodyBytes = 0
  }

  /** Counts and returns the rejection of a request that does not fit. */
  reject(request: BodyHolder): Problem {
    const { logger, random, monotonicMs } = this.#options
    this.#rejected += 1
    const nowMs = monotonicMs()
    if (nowMs - this.#warnedAtMs >= WARN_INTERVAL_MS) {
      this.#warnedAtMs = nowMs
      const { bytes: projectBytes } = this.#bodiesOf(request)
      logger.warn(
        { projectId: request.project?.id, projectBytes, ...this.status },
        'too many bytes of bodies, rejecting requests',
      )
    }
    return retryLater(RETRY_AFTER_S, random(), 'Too many bytes of bodies are in flight. Retry later.')
  }

  get status(): BodyStatus {
    return { bytes: this.#bytes, ...this.#options.limits, rejected: this.#rejected }
  }

  #bodiesOf(request: BodyHolder): ProjectBodies {
    return (request.projectBodies ??= this.#find(request.project?.id ?? ''))
  }

  #find(projectId: string): ProjectBodies {
    const known = this.#projects.get(projectId)
    if (known !== undefined) return known
    if (this.#projects.size >= PROJECTS_MAX) {
      for (const [id, { bytes }] of this.#projects) if (bytes === 0) this.#projects.delete(id)
    }
    const bodies = { bytes: 0 }
    this.#projects.set(projectId, bodies)
    return bodies
  }
}
