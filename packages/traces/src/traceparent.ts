/** The identity of a span. */
export interface SpanContext {
  /** 32 lower-case hexadecimal digits, not all of them 0. */
  readonly traceId: string
  /** 16 lower-case hexadecimal digits, not all of them 0. */
  readonly spanId: string
}

/** The parent that a caller names. */
export interface Traceparent extends SpanContext {
  /** Whether the caller records its span. */
  readonly isSampled: boolean
}

/** The characters of a `traceparent` of version 00. */
export const TRACEPARENT_LENGTH = 55

/** Of version 00, and the part of later versions that is the same. A later version may have more after it. */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?=-|$)/
/** The lowest bit of the flags. */
const SAMPLED = 1

/**
 * Reads a `traceparent` of the W3C Trace Context (https://www.w3.org/TR/trace-context/#traceparent-header).
 *
 * @returns undefined if it is invalid
 */
export function parseTraceparent(text: string): Traceparent | undefined {
  const match = TRACEPARENT.exec(text)
  if (match === null) return undefined
  const [, version, traceId = '', spanId = '', flags = ''] = match
  if (version === '00' && text.length !== TRACEPARENT_LENGTH) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED }
}

/** The `traceparent` of a span that is recorded. */
export function formatTraceparent({ traceId, spanId }: SpanContext): string {
  return `00-${traceId}-${spanId}-01`
}
