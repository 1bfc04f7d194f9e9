/** Numbers 0 ≤ n < 1. */
export type Random = () => number

/** A generator that gives the same numbers for the same seed (mulberry32). */
export function seededRandom(seed: number): Random {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** A whole number, `min` and `max` included. */
export function integer(random: Random, min: number, max: number): number {
  return min + Math.floor(random() * (max - min + 1))
}

/** A whole number, as likely to be between 1 and 10 as between 10 and 100. */
export function logInteger(random: Random, min: number, max: number): number {
  return Math.round(min * (max / min) ** random())
}

/** One of the items. @throws RangeError when there is none */
export function pick<T>(random: Random, items: readonly T[]): T {
  const index = Math.floor(random() * items.length)
  for (const item of items.slice(index, index + 1)) return item
  throw new RangeError('nothing to pick from')
}

/** The items in another order (Fisher and Yates). */
export function shuffle<T>(random: Random, items: readonly T[]): T[] {
  const rest = [...items]
  const shuffled: T[] = []
  while (rest.length > 0) shuffled.push(...rest.splice(Math.floor(random() * rest.length), 1))
  return shuffled
}
