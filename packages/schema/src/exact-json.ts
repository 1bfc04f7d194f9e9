/**
 * Numbers that a JavaScript number cannot hold, kept as they were written. Built on JSON.rawJSON and the reviver's
 * access to the source text (ECMAScript 2026), which TypeScript's library does not declare yet.
 */
interface RawJson {
  readonly rawJSON: string
}
interface JsonWithSource {
  rawJSON(text: string): RawJson
  isRawJSON(value: unknown): value is RawJson
}
const json = JSON as unknown as JsonWithSource

export const isRawJson = (value: unknown): value is RawJson => json.isRawJSON(value)

/** Whether a number as JSON.parse gives it may differ from the one that was written: beyond 2^53, or infinite. */
export const isInexact = (value: number): boolean => !(Math.abs(value) <= Number.MAX_SAFE_INTEGER)

/** A reviver for JSON.parse that keeps inexact numbers as they are written. */
export function keepInexact(_name: string, value: unknown, ...[context]: unknown[]): unknown {
  const source = (context as { source?: string } | undefined)?.source
  return typeof value === 'number' && source !== undefined && isInexact(value) ? json.rawJSON(source) : value
}
