import type { AddObserver } from '@sluice/queue'
import { LabelledCounts, type Metrics, type Sample, type WorkCounts } from '@sluice/ops'
import type { Authenticator } from '@sluice/access'
import type { Intake } from '../intake/intake.ts'
import type { BodyBudget } from '../overload/body-budget.ts'
import { type OverloadMonitor, overloadReasons } from '../overload/overload-monitor.ts'
import { METHODS } from 'node:http'
import { type ProblemCode, problems } from '../problems.ts'

/** Stands for a route or a method that is not known. */
export const OTHER = 'other'

const methods: ReadonlySet<string> = new Set(METHODS)

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
  /** Acknowledged entries by project. Projects above the limit count as `other`. */
  readonly projects: LabelledCounts | undefined
  readonly #observeAck: (seconds: number) => void

  /** @param projectsMax how many projects have a count of their own */
  constructor(observeAck: (seconds: number) => void = () => undefined, projectsMax = 0) {
    const codes = Object.keys(problems)
    this.rejected = new LabelledCounts(codes.length, codes)
    this.#observeAck = observeAck
    this.projects = projectsMax > 0 ? new LabelledCounts(projectsMax) : undefined
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

  acknowledged(answer: AnswerCount, entries: number, projectId: string, seconds: number): void {
    answer.count += 1
    this.accepted += entries
    this.projects?.add(projectId, entries)
    this.#observeAck(seconds)
  }

  get answers(): Sample[] {
    return Array.from(this.#answers.values(), ({ labels, count }) => [labels, count])
  }
}

/** An add to the queue ends after 1.8 s, and a request soon after it. */
const ACK_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5]
const ADD_BUCKETS_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2]
/** A chunk takes requests until it has 4,000 rows. */
const CHUNK_ROWS_BUCKETS = [1, 10, 100, 250, 500, 1_000, 2_000, 4_000, 6_000]

/** The counts of an API process that are needed before its parts are made. @param projectsMax `METRICS_PROJECTS_MAX` */
export function countApi(
  metrics: Metrics,
  projectsMax: number,
): { readonly requests: RequestCounts; readonly onAdd: AddObserver } {
  const observeAck = metrics.histogram(
    { name: 'sluice_ack_duration_seconds', help: 'From the head of a request to its 202.' },
    ACK_BUCKETS_S,
  )
  const observeRows = metrics.histogram(
    { name: 'sluice_chunk_rows', help: 'Rows of each chunk that was added to the queue.' },
    CHUNK_ROWS_BUCKETS,
  )
  const observeAdd = metrics.histogram(
    {
      name: 'sluice_chunk_add_duration_seconds',
      help: 'From the first attempt to add a chunk to the answer of Redis.',
      label: 'result',
      of: ['ok', 'error'],
    },
    ADD_BUCKETS_S,
  )
  return {
    requests: new RequestCounts(observeAck, projectsMax),
    onAdd: ({ rows }, durationMs, isAdded) => {
      observeAdd(durationMs / 1_000, isAdded ? 'ok' : 'error')
      if (isAdded) observeRows(rows)
    },
  }
}

export function workCounts(
  requests: RequestCounts,
  { invalidEntries }: Pick<Intake, 'invalidEntries'>,
): WorkCounts {
  const rejected = [...requests.rejected, ...invalidEntries].reduce((sum, [, count]) => sum + count, 0)
  return { accepted: requests.accepted, rejected }
}

/** Exports the counts of the parts of an API process. docs/metrics.md describes each. */
export function exportApi(
  metrics: Metrics,
  requests: RequestCounts,
  authenticator: Pick<Authenticator, 'keysLost'>,
  intake: Pick<Intake, 'invalidEntries'>,
  overload: Pick<OverloadMonitor, 'status'>,
  bodies: Pick<BodyBudget, 'status'>,
): void {
  type Read = Parameters<Metrics['counter']>[1]
  const refused: Read = () => [
    ...overloadReasons.map((signal) => [[signal], overload.status.refused[signal]] as const),
    [['bodies'], bodies.status.rejected],
  ]
  const counters: readonly (readonly [name: string, help: string, read: Read, ...labels: string[]])[] = [
    ['sluice_http_requests_total', 'Answered requests.', () => requests.answers, 'route', 'method', 'status'],
    ['sluice_requests_rejected_total', 'Rejected, by problem.', () => requests.rejected, 'reason'],
    ['sluice_entries_accepted_total', 'Entries acknowledged with 202.', () => requests.accepted],
    [
      'sluice_project_entries_accepted_total',
      'The same by project.',
      () => requests.projects ?? [],
      'project',
    ],
    ['sluice_entries_rejected_total', 'Invalid entries, by code.', () => intake.invalidEntries, 'reason'],
    ['sluice_request_body_bytes_total', 'Bytes of bodies as they arrived.', () => requests.bodyBytes],
    ['sluice_request_decoded_bytes_total', 'Bytes of decoded bodies.', () => requests.decodedBytes],
    ['sluice_idempotency_replays_total', 'Replays of idempotent requests.', () => requests.replays],
    ['sluice_known_keys_lost_total', 'Valid keys that are gone.', () => authenticator.keysLost],
    ['sluice_overload_rejections_total', 'Requests rejected by an overload signal.', refused, 'signal'],
  ]
  for (const [name, help, read, ...labels] of counters) metrics.counter({ name, help, labels }, read)

  metrics.gauge(
    {
      name: 'sluice_overload_signal_active',
      help: '1 while the signal rejects requests.',
      labels: ['signal'],
    },
    () => {
      const { signals } = overload.status
      return overloadReasons.map((reason) => [[reason], Number(signals[reason].isOver)] as const)
    },
  )
  metrics.gauge(
    { name: 'sluice_body_bytes_held', help: 'Bytes of request bodies and their rows in memory.' },
    () => bodies.status.bytes,
  )
}
