/** A number that was read at a time. */
export interface Sample {
  /** Milliseconds since the epoch. */
  readonly atMs: number
  readonly value: number
}

/** By how much a sampled number grows a second: the slope of the least squares' line. 0 for less than two samples. */
export function growthPerS(samples: readonly Sample[]): number {
  const count = samples.length
  const meanAt = samples.reduce((sum, { atMs }) => sum + atMs, 0) / count
  const meanValue = samples.reduce((sum, { value }) => sum + value, 0) / count
  let covariance = 0
  let variance = 0
  for (const { atMs, value } of samples) {
    covariance += (atMs - meanAt) * (value - meanValue)
    variance += (atMs - meanAt) ** 2
  }
  return variance === 0 ? 0 : (covariance / variance) * 1_000
}

/** @param fraction 0 to 1 @returns undefined without values */
export function quantile(values: readonly number[], fraction: number): number | undefined {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))]
}
