/** A source of numbers 0 ≤ n < 1. */
export type Random = () => number

/** Returns the same numbers for the same seed (mulberry32). */
export function seededRandom(seed: number): Random {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** An integer from `min` to `max`, both included. */
export function integer(random: Random, min: number, max: number): number {
  return min + Math.floor(random() * (max - min + 1))
}

/** An integer whose logarithm is uniformly distributed: 1 to 10 is as likely as 10 to 100. */
export function logInteger(random: Random, min: number, max: number): number {
  return Math.round(min * (max / min) ** random())
}

export function happens(random: Random, probability: number): boolean {
  return random() < probability
}

/** One of the items. @throws RangeError when the list is empty */
export function pick<T>(random: Random, items: readonly T[]): T {
  const index = Math.floor(random() * items.length)
  for (const item of items.slice(index, index + 1)) return item
  throw new RangeError('cannot pick from an empty list')
}

/** One of the items, each in proportion to its weight. @throws RangeError when the list is empty */
export function pickWeighted<T>(random: Random, items: readonly (readonly [weight: number, item: T])[]): T {
  let point = random() * items.reduce((sum, [weight]) => sum + weight, 0)
  for (const [weight, item] of items) {
    point -= weight
    if (point < 0) return item
  }
  throw new RangeError('cannot pick from an empty list')
}

/** The items in random order (Fisher–Yates). */
export function shuffle<T>(random: Random, items: readonly T[]): T[] {
  const rest = [...items]
  const shuffled: T[] = []
  while (rest.length > 0) shuffled.push(...rest.splice(Math.floor(random() * rest.length), 1))
  return shuffled
}
