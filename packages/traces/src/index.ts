import { type Logger, stringSetting } from '@sluice/runtime'

/**
 * Settings of every process that makes spans. They have the names of the OpenTelemetry specification, since the exporter also reads other
 * variables of it. The general `OTEL_EXPORTER_OTLP_ENDPOINT` has no effect: platforms set it for all processes, and traces are off
 * unless someone wants traces of Sluice.
 */
export const traceSettings = {
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: stringSetting(
    { pattern: '^https?://[^/\\s]' },
    'The URL to which traces are sent with OTLP over HTTP, such as `http://collector:4318/v1/traces`. Without it, there are no traces. See docs/traces.md.',
  ),
} as const

/** The identity of a span, in lower-case hexadecimal digits. */
export interface SpanContext {
  readonly traceId: string
  readonly spanId: string
}

export interface Traceparent extends SpanContext {
  /** Whether the caller records its span. */
  readonly isSampled: boolean
}

const TRACEPARENT_LENGTH = 55
/** Of version 00, and the part of later versions that is the same. A later version may have more after it. */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?=-|$)/

/** Reads a `traceparent` (https://www.w3.org/TR/trace-context/#traceparent-header). @returns undefined if it is invalid */
export function parseTraceparent(text: string): Traceparent | undefined {
  const match = TRACEPARENT.exec(text)
  if (match === null) return undefined
  const [, version, traceId = '', spanId = '', flags = ''] = match
  if (version === '00' && text.length !== TRACEPARENT_LENGTH) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export function formatTraceparent({ traceId, spanId }: SpanContext): string {
  return `00-${traceId}-${spanId}-01`
}

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
  /** Links per span. A chunk has up to 4,000 requests, and a batch up to 2,000 chunks. */
  linksMax: 100,
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
  set(attributes: Attributes): void
  link(to: SpanContext): void
  /** Afterwards, no call has an effect. */
  end(result?: 'error'): void
}

/** Makes spans. Who makes one has decided before that it is recorded. */
export interface Traces {
  start(options: SpanOptions): Span
  /** Exports the last spans until the deadline, on the clock of `performance.now()`, or for `spanLimits.closeMaxMs`. Never rejects. */
  close(deadlineMs: number): Promise<void>
}

export interface TracesOptions {
  readonly app: 'api' | 'worker'
  readonly version: string
  readonly instanceId: string
  readonly logger: Pick<Logger, 'warn'>
}

/** Undefined if traces are off. Then OpenTelemetry is not loaded, and callers have one branch where they would make a span. */
export async function startTraces(
  endpoint: string | undefined,
  options: TracesOptions,
): Promise<Traces | undefined> {
  if (endpoint === undefined) return undefined
  const { OtlpTraces } = await import('./otlp-traces.ts')
  return new OtlpTraces(endpoint, options)
}
