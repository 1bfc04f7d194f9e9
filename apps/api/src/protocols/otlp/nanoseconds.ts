/** The contract has the years up to 2261. */
const END_NS = BigInt(Date.UTC(2262, 0, 1)) * 1_000_000n

/** Whether a record may have this time. 0 stands for an unknown time. */
export function isTimestamp(unixNano: bigint): boolean {
  return unixNano > 0n && unixNano < END_NS
}

/** ISO 8601 with microseconds. Further digits are dropped. */
export function toTimestamp(unixNano: bigint): string {
  const us = unixNano / 1_000n
  const text = new Date(Number(us / 1_000n)).toISOString()
  return `${text.slice(0, -1)}${String(us % 1_000n).padStart(3, '0')}Z`
}

/** Whether a timestamp has all digits of a time. */
export function hasWholeMicroseconds(unixNano: bigint): boolean {
  return unixNano % 1_000n === 0n
}
