/**
 * A number that JavaScript cannot represent exactly, as its digits in the JSON. Uses JSON.rawJSON (ECMAScript 2026), which TypeScript's
 * library does not declare yet.
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

/** Whether a number from JSON.parse may differ from the number in the JSON: it is beyond 2^53, or infinite. */
export const isInexact = (value: number): boolean => !(Math.abs(value) <= Number.MAX_SAFE_INTEGER)

/** The number with these digits. An inexact number keeps them, so that JSON.stringify writes all of them. */
export function keepInexact(source: string): number | RawJson {
  const value = Number(source)
  return isInexact(value) ? json.rawJSON(source) : value
}
