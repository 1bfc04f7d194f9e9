import type { Logger } from '@sluice/runtime'
import type { SpanContext } from './traceparent.ts'

/** The limits of the spans of a process. What is above them is dropped, and never delays a request or a batch. */
export const spanLimits = {
  /** Ended spans that wait for their export: some seconds of the highest number of spans. */
  waitingMax: 2_048,
  /** Spans per export. They are serialized at once, which blocks the event loop. */
  exportSpansMax: 128,
  /** The time after which ended spans are exported, if they do not fill an export before. */
  exportIntervalMs: 1_000,
  /** The timeout of a silent endpoint. */
  exportTimeoutMs: 5_000,
  /** How long an export may take, for an endpoint that sends something from time to time. */
  exportMaxMs: 15_000,
  /** How long a process that stops waits for its last spans. */
  closeMaxMs: 1_000,
  /** Links per span. A chunk has up to 2,000 requests, and a batch up to 2,000 chunks. */
  linksMax: 100,
  /** Attributes per span: more than any span has. */
  attributesMax: 32,
  /** Characters of an attribute: more than any id has. */
  attributeLengthMax: 256,
} as const

if (spanLimits.exportSpansMax > spanLimits.waitingMax)
  throw new Error('exportSpansMax is larger than what may wait')
if (spanLimits.exportTimeoutMs > spanLimits.exportMaxMs)
  throw new Error('exportTimeoutMs is longer than an export may take')

export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

export interface SpanOptions {
  readonly name: string
  readonly kind: 'client' | 'consumer' | 'producer' | 'server'
  /** On the clock of `performance.now()`. */
  readonly startMs: number
  readonly parent?: SpanContext | undefined
  /** Those above `spanLimits.linksMax` are dropped. */
  readonly links?: readonly SpanContext[]
  /** Never an API key, an idempotency key or a part of an entry. Those that are undefined are left out. */
  readonly attributes: Attributes
}

/** A span that is recorded, and exported after its end. */
export interface Span {
  readonly context: SpanContext
  /** Without effect after the end. */
  set(attributes: Attributes): void
  /** Without effect after the end. */
  link(to: SpanContext): void
  /** Ends it once. Further calls have no effect. */
  end(result?: 'error'): void
}

/** Makes spans. Who makes one has decided before that it is recorded. */
export interface Traces {
  start(options: SpanOptions): Span
  /**
   * Exports the last spans, and drops those that are not exported within `spanLimits.closeMaxMs`. Never rejects.
   *
   * @param deadlineMs the latest end, on the clock of `performance.now()`
   */
  close(deadlineMs: number): Promise<void>
}

export interface TracesOptions {
  /** `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` */
  readonly endpoint: string | undefined
  /** The name of the process. */
  readonly app: 'api' | 'worker'
  readonly version: string
  readonly instanceId: string
  readonly logger: Pick<Logger, 'warn'>
}

/** Undefined if traces are off. Then OpenTelemetry is not loaded, and callers have one branch where they would make a span. */
export async function startTraces({ endpoint, ...options }: TracesOptions): Promise<Traces | undefined> {
  if (endpoint === undefined) return undefined
  const { OtlpTraces } = await import('./otlp-traces.ts')
  return new OtlpTraces({ ...options, endpoint })
}
