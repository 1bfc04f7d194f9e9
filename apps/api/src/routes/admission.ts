import type { Authenticator } from '@sluice/access'
import type { Project } from '@sluice/projects'
import type { RequestStamp } from '@sluice/rows'
import type { Span } from '@sluice/traces'
import type { FastifyReply } from 'fastify'
import type { Answer } from '../answer.ts'
import type { ChunkWriter } from '../chunks/chunk-writer.ts'
import type { RequestIdentity, WriteOnce } from '../idempotency/idempotency.ts'
import type { ContentDecoder } from '../intake/content-encoding.ts'
import type { Intake } from '../intake/intake.ts'
import type { AnswerCount, RequestCounts } from '../metrics/api-metrics.ts'
import type { BodyBudget, HeldBytes } from '../overload/body-budget.ts'
import type { OverloadMonitor } from '../overload/overload-monitor.ts'
import type { ProblemCode } from '../problems.ts'
import type { Allowance, RateLimits } from '../rate-limits/allowance.ts'
import { type Amount, largestCost, minus, nothing, plus, positive } from '../rate-limits/rate-limit.ts'
import { requestAttributes, type RequestTraces } from '../traces/request-traces.ts'
import type { Turns } from '../turns.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Null before authentication, and on routes that take no entries. */
    admission: Admission | null
  }
}

export interface IntakeDependencies {
  readonly authenticator: Authenticator
  readonly rateLimits: RateLimits
  readonly intake: Intake
  readonly writer: ChunkWriter
  readonly writeOnce: WriteOnce
  readonly overload: Pick<OverloadMonitor, 'check' | 'reject'>
  readonly bodies: BodyBudget
  readonly decoder: ContentDecoder
  readonly counts: RequestCounts
  /** For work that many requests may cause at once. */
  readonly turns: Turns
  /** The clock of all API processes: rows expire by it. It may throw ClockError. */
  readonly wallMs: () => number
  /** Undefined if traces are off: then a request only costs the branches that test it. */
  readonly traces?: RequestTraces | undefined
}

/** What is known of a request from its authentication to its response. One for each request, made by `receive`. */
export class Admission {
  readonly dependencies: IntakeDependencies
  readonly reply: FastifyReply
  /** When the head of the request arrived, on the monotonic clock. */
  readonly startedMs: number
  readonly project: Project
  /** The rate limit of the project. Null for a project without one. */
  readonly allowance: Allowance | null
  readonly held: HeldBytes
  /** Whether the whole body has arrived: the parser may report the end of the request later. */
  isReceived = false
  span: Span | null = null
  /** Undefined for a request without an idempotency key, and before its body has arrived. */
  identity: RequestIdentity | undefined
  problem: ProblemCode | undefined
  #charged: Amount = nothing

  constructor(reply: FastifyReply, startedMs: number, project: Project, dependencies: IntakeDependencies) {
    this.reply = reply
    this.startedMs = startedMs
    this.project = project
    this.dependencies = dependencies
    this.allowance = dependencies.rateLimits(project)
    this.held = dependencies.bodies.open(project.id)
  }

  /** What the rows of the request have in common. */
  stamp(): RequestStamp {
    const { id: projectId, retentionDays } = this.project
    return { projectId, retentionDays, receivedAtMs: this.dependencies.wallMs() }
  }

  /** Charges one entry and the bytes of the body. @returns undefined if it is charged at once @throws Problem `rate_limited`, or rejects with it */
  chargeBytes(bytes: number): Promise<void> | undefined {
    return this.#charge({ entries: 1, bytes }, largestCost(bytes))
  }

  /** Charges the entries of the body. If they are too many, the bytes stay charged. @returns, @throws as `chargeBytes` */
  chargeEntries(entries: number): Promise<void> | undefined {
    // A request without entries costs as much work as one with an entry.
    return entries <= 1 ? undefined : this.#charge({ entries, bytes: this.#charged.bytes })
  }

  #charge(cost: Amount, whole?: Amount): Promise<void> | undefined {
    const charged = this.allowance?.take(cost, whole, this.#charged)
    if (charged !== undefined) return charged.then(() => void (this.#charged = cost))
    this.#charged = cost
    return undefined
  }

  /** Charges work that is done, whether the limit covers it or not, unless it was charged before. */
  chargeDone(cost: Amount): void {
    const owed = positive(minus(cost, this.#charged))
    if (owed.entries > 0 || owed.bytes > 0) this.allowance?.charge(owed)
    this.#charged = plus(this.#charged, owed)
  }

  /** Sets the rate limit headers of the response, and releases what is held, but for a long response. To be called before it is sent. */
  end(answer: string | Answer | undefined): void {
    this.held.releaseAfter(this.reply.raw, typeof answer === 'object' ? (answer.bytes ?? 0) : 0)
    if (this.allowance === null) return
    void this.reply
      .header('ratelimit-policy', this.allowance.policy)
      .header('ratelimit', this.allowance.state)
  }

  acknowledge(answer: AnswerCount, entries: number): void {
    if (this.span !== null) this.span.set({ [requestAttributes.entries]: entries })
    const seconds = (performance.now() - this.startedMs) / 1_000
    this.dependencies.counts.acknowledged(answer, entries, this.project.id, seconds)
  }

  markReplay(): void {
    this.dependencies.counts.replays += 1
    if (this.span !== null) this.span.set({ [requestAttributes.isReplay]: true })
    void this.reply.header('idempotency-replayed', 'true')
  }
}
