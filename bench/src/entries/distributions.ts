import { integer, type Random } from '@sluice/harness/random'

/** The gap to the next of independent events whose average distance is `mean`. */
export function exponential(random: Random, mean: number): number {
  return -mean * Math.log(1 - random())
}

/** A positive value with a long tail, as durations and sizes have. Half of the values are below `median`. */
export function longTailed(random: Random, median: number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  return median * Math.exp(1.1 * normal)
}

export function hex(random: Random, digits: number): string {
  return Array.from({ length: digits }, () => integer(random, 0, 15).toString(16)).join('')
}
