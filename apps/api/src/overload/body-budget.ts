import type { Logger } from '@sluice/runtime'
import { limits } from '@sluice/schema'
import type { ServerResponse } from 'node:http'
import { STREAMED_BYTES_MIN } from '../answer.ts'
import { retryLater } from '../problems.ts'

/** How many bytes one process may hold, of all projects and of one. */
export interface BodyLimits {
  readonly bytesMax: number
  readonly projectBytesMax: number
}

/** Bytes held per record of a shipper besides its row: its item in a response, or why it is rejected. Uncounted, a 15-byte record took 190. */
export const RECORD_BYTES = 256

/**
 * A compressed body is held together with the decoded one, and a body together with its rows and records. With lower limits, a valid
 * request would never fit.
 */
export const BODY_LIMITS_MIN =
  2 * limits.bodyBytesMax + limits.rowBytesPerRequestMax + limits.recordsPerRequestMax * RECORD_BYTES

// The rows of entries have no limit of their own: each adds the server's fields, and escapes may double the length.
if (limits.rowBytesPerRequestMax < 4 * limits.bodyBytesMax)
  throw new Error('rowBytesPerRequestMax is too small for the rows of the largest body')

/** Most bodies arrive within a second. */
const RETRY_AFTER_S = { min: 1, max: 3 }
/** 13 MB in 60 s are 1.7 Mbit/s. A client that reads a part every minute would use up the budget of all projects for long. */
const READ_MS_MAX = 60_000

/** Projects without bodies are forgotten when there are more. 10,000 of about 100 bytes: 1 MB. */
const PROJECTS_MAX = 10_000

/** What is held for one project. */
interface ProjectBytes {
  readonly id: string
  bytes: number
}

interface BodyBudgetOptions {
  readonly limits: BodyLimits
  readonly logger: Logger
  /** 0 ≤ random < 1 */
  readonly random: () => number
}

/**
 * Counts the bytes that requests hold from the first byte of their bodies until their responses: bodies, decoded bodies, rows, and long
 * responses until they are read. A request that does not fit is rejected. Others are not affected: one project alone cannot use all of the
 * memory, and slow senders, slow readers and a slow Redis cannot fill it.
 */
export class BodyBudget {
  readonly #options: BodyBudgetOptions
  readonly #projects = new Map<string, ProjectBytes>()
  #bytes = 0
  #rejected = 0

  constructor(options: BodyBudgetOptions) {
    this.#options = options
  }

  /** What a new request holds: nothing yet. */
  open(projectId: string): HeldBytes {
    let project = this.#projects.get(projectId)
    if (project === undefined) {
      if (this.#projects.size >= PROJECTS_MAX)
        for (const [id, { bytes }] of this.#projects) if (bytes === 0) this.#projects.delete(id)
      project = { id: projectId, bytes: 0 }
      this.#projects.set(projectId, project)
    }
    return new HeldBytes(this, project)
  }

  /** @param bytes negative to release them */
  add(project: ProjectBytes, bytes: number): void {
    project.bytes += bytes
    this.#bytes += bytes
  }

  /** Rejects a request whose further bytes do not fit. @throws Problem `overloaded` */
  check({ id: projectId, bytes: projectBytes }: ProjectBytes, bytes: number): void {
    const { limits: max, logger, random } = this.#options
    if (this.#bytes + bytes <= max.bytesMax && projectBytes + bytes <= max.projectBytesMax) return
    this.#rejected += 1
    logger.warn({ projectId, projectBytes, ...this.status }, 'too many bytes of bodies, rejecting requests')
    throw retryLater(RETRY_AFTER_S, random(), 'Too many bytes of bodies are in flight. Retry later.')
  }

  /** The part of the page `/overload` that is about bodies. */
  get status(): BodyLimits & { readonly bytes: number; readonly rejected: number } {
    return { bytes: this.#bytes, ...this.#options.limits, rejected: this.#rejected }
  }
}

/** What the budget holds for one request and its response. */
export class HeldBytes {
  readonly #budget: BodyBudget
  readonly #project: ProjectBytes
  #bytes = 0

  constructor(budget: BodyBudget, project: ProjectBytes) {
    this.#budget = budget
    this.#project = project
  }

  /** @throws Problem `overloaded` if further bytes do not fit now */
  check(bytes: number): void {
    this.#budget.check(this.#project, bytes)
  }

  /** Holds further bytes until `releaseAfter`. @throws Problem `overloaded`; then nothing changes */
  hold(bytes: number): void {
    this.check(bytes)
    this.#add(bytes)
  }

  #add(bytes: number): void {
    this.#budget.add(this.#project, bytes)
    this.#bytes += bytes
  }

  /**
   * Releases everything when the response is known, but a long response when its client has read it or closes the connection. To be called
   * before it is sent. Closes the connection of a client that takes too long to read it.
   */
  releaseAfter(response: ServerResponse, bytes: number): void {
    // A response whose connection is closed emits no further event.
    const isStreamed = bytes >= STREAMED_BYTES_MIN && !response.closed && !response.destroyed
    this.#add((isStreamed ? bytes : 0) - this.#bytes)
    if (!isStreamed) return
    const timer = setTimeout(() => response.destroy(), READ_MS_MAX)
    response.once('close', () => {
      clearTimeout(timer)
      this.#add(-bytes)
    })
  }
}
