const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const

/**
 * Describes how far a clock is from another one: `40 days behind`, or `1 hour ahead of`.
 *
 * @param skewMs positive if the clock is ahead of the other
 */
export function describeSkew(skewMs: number): string {
  const absoluteMs = Math.abs(skewMs)
  const [name, ms] = units.find(([, unitMs]) => absoluteMs >= unitMs) ?? units[3]
  const count = Math.round(absoluteMs / ms)
  return `${count} ${name}${count === 1 ? '' : 's'} ${skewMs < 0 ? 'behind' : 'ahead of'}`
}
