import { LabelledCounts, type Sample } from '@sluice/runtime'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { METHODS } from 'node:http'
import { type ProblemCode, problems } from '../problems.ts'

/** Stands for a route or a method that is not known. */
export const OTHER = 'other'

const methods: ReadonlySet<string> = new Set(METHODS)

interface AnswerCount {
  readonly labels: readonly [route: string, method: string, status: string]
  count: number
}

/** What the API has received and answered since the process started. A request costs a few additions and a lookup. */
export class RequestCounts {
  readonly #answers = new Map<string, AnswerCount>()
  /** Requests that were answered with a problem document, by its code. */
  readonly rejected: LabelledCounts
  /** Entries acknowledged with 202, those of replays not included. */
  accepted = 0
  /** Requests that were answered from an idempotency record. */
  replays = 0
  /** Bytes of bodies, as they arrived and after decoding. */
  bodyBytes = 0
  decodedBytes = 0
  readonly #projects: LabelledCounts | undefined
  readonly #observeAck: (seconds: number) => void

  /**
   * @param observeAck called with the time from the head of a request to its 202
   * @param projectsMax how many projects have a count of their own
   */
  constructor(observeAck: (seconds: number) => void = () => undefined, projectsMax = 0) {
    const codes = Object.keys(problems)
    this.rejected = new LabelledCounts(codes.length, codes)
    this.#observeAck = observeAck
    this.#projects = projectsMax > 0 ? new LabelledCounts(projectsMax) : undefined
  }

  /** Counts the answer to a request that has a route. */
  answered(route: string, { method, problem }: FastifyRequest, { statusCode }: FastifyReply): void {
    this.#answered(route, method, statusCode)
    if (problem !== null) this.rejected.add(problem)
  }

  /** Counts the rejection of a request whose path does not exist, or that is not valid HTTP. */
  answeredWithoutRoute(method: string, problem: ProblemCode): void {
    this.#answered(OTHER, method, problems[problem].status)
    this.rejected.add(problem)
  }

  /** Counts a 202 with this many new entries. */
  acknowledged(entries: number, projectId: string, seconds: number): void {
    this.accepted += entries
    this.#projects?.add(projectId, entries)
    this.#observeAck(seconds)
  }

  /** By route, method and status. */
  get answers(): Sample[] {
    return Array.from(this.#answers.values(), ({ labels, count }) => [labels, count])
  }

  /** Acknowledged entries by project, those of projects above the limit as `other`. */
  get projects(): Iterable<Sample> {
    return this.#projects ?? []
  }

  #answered(route: string, method: string, status: number): void {
    const key = `${status} ${method} ${route}`
    const known = this.#answers.get(key)
    if (known === undefined) {
      const labels = [route, methods.has(method) ? method : OTHER, String(status)] as const
      this.#answers.set(key, { labels, count: 1 })
    } else {
      known.count += 1
    }
  }
}
