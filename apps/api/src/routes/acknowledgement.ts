import type { FastifyRequest } from 'fastify'
import type { AnswerCount, RequestCounts } from '../metrics/request-counts.ts'
import { requestAttributes } from '../traces/request-traces.ts'

/** Counts an answer that acknowledges this number of new entries. */
export function acknowledge(
  answer: AnswerCount,
  entries: number,
  { project, startedMs, span }: FastifyRequest,
  counts: RequestCounts,
): void {
  if (span !== null) span.set({ [requestAttributes.entries]: entries })
  counts.acknowledged(answer, entries, project?.id ?? '', (performance.now() - startedMs) / 1_000)
}

/** Counts a request that was answered from an idempotency record. */
export function noteReplay({ span }: FastifyRequest, counts: RequestCounts): void {
  counts.replays += 1
  if (span !== null) span.set({ [requestAttributes.isReplay]: true })
}
