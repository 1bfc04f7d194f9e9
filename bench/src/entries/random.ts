/** Random values from a seed, so that every system gets the same entries in every run. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** 0 ≤ value < 1. Mulberry32: a few operations a value, and good enough for test data. */
  next(): number {
    this.#state = (this.#state + 0x6d_2b_79_f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** min ≤ value < max */
  integer(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min))
  }

  /** Whether something happens that has this probability. */
  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.integer(0, choices.length)] ?? choices[0]
  }

  hex(digits: number): string {
    let text = ''
    while (text.length < digits)
      text += this.integer(0, 2 ** 32)
        .toString(16)
        .padStart(8, '0')
    return text.slice(0, digits)
  }

  /** A positive value with a long tail, as durations and sizes have: half of them below `median`. */
  longTailed(median: number): number {
    return median * Math.exp(1.1 * this.#normal())
  }

  /** The gap to the next of events that come independently of each other, at an average of `mean` apart. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.next())
  }

  #normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next())
  }
}
