/** A double as a value of JSON, which has no form for the three others: they become texts. */
export function asJsonNumber(value: number): number | string {
  return Number.isFinite(value) ? value : String(value)
}
