import { LabelledCounts, type Sample } from '@sluice/ops'
import { METHODS } from 'node:http'
import { type ProblemCode, problems } from '../problems.ts'

/** Stands for a route or a method that is not known. */
export const OTHER = 'other'

const methods: ReadonlySet<string> = new Set(METHODS)

/** The responses of one route with one method and one status. */
export interface AnswerCount {
  readonly labels: readonly [route: string, method: string, status: string]
  count: number
}

/** What the API has received, and how it has responded, since the process started. A request costs a few additions and a lookup. */
export class RequestCounts {
  readonly #answers = new Map<string, AnswerCount>()
  /** Requests that got a problem document, by its code. */
  readonly rejected: LabelledCounts
  /** Entries acknowledged with 202, without the entries of replays. */
  accepted = 0
  /** Requests whose response came from an idempotency record. */
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

  /** The count of certain responses. To be kept where they are frequent. */
  countOf(route: string, method: string, status: number): AnswerCount {
    const key = `${status} ${method} ${route}`
    const known = this.#answers.get(key)
    if (known !== undefined) return known
    const labels = [route, methods.has(method) ? method : OTHER, String(status)] as const
    const answer = { labels, count: 0 }
    this.#answers.set(key, answer)
    return answer
  }

  /** Counts the response to a rejected request. @param status protocols of shippers have statuses of their own for some problems */
  rejectedWith(
    route: string,
    method: string,
    problem: ProblemCode,
    status: number = problems[problem].status,
  ): void {
    this.countOf(route, method, status).count += 1
    this.rejected.add(problem)
  }

  /** Counts a 202 with this many new entries. */
  acknowledged(answer: AnswerCount, entries: number, projectId: string, seconds: number): void {
    answer.count += 1
    this.accepted += entries
    this.#projects?.add(projectId, entries)
    this.#observeAck(seconds)
  }

  /** By route, method and status. */
  get answers(): Sample[] {
    return Array.from(this.#answers.values(), ({ labels, count }) => [labels, count])
  }

  /** Acknowledged entries by project. Projects above the limit count as `other`. */
  get projects(): Iterable<Sample> {
    return this.#projects ?? []
  }
}
