import { integer, pick, seededRandom, type Random } from '../chaos/random.ts'

export { integer, pick, type Random }

/** A generator for one request of a run: the same for the same seed and number, whatever came before. */
export function requestRandom(seed: number, number: number): Random {
  // Two odd constants, so that neither neighbouring seeds nor neighbouring numbers begin alike.
  return seededRandom(Math.imul(seed, 0x9e3779b1) ^ Math.imul(number, 0x85ebca6b))
}

/** Whether something happens that happens with this chance, 0 to 1. */
export function happens(random: Random, chance: number): boolean {
  return random() < chance
}

/** One of the items, each as often as its weight says. @throws RangeError when there is none */
export function pickWeighted<T>(random: Random, items: readonly (readonly [weight: number, item: T])[]): T {
  let point = random() * items.reduce((sum, [weight]) => sum + weight, 0)
  for (const [weight, item] of items) {
    point -= weight
    if (point < 0) return item
  }
  throw new RangeError('nothing to pick from')
}
