/** The high-water mark and the low-water mark of a signal. */
export interface Thresholds {
  readonly high: number
  /** Below `high`. The gap keeps a signal near the high-water mark from switching on and off every second. */
  readonly low: number
}

/** A signal with thresholds. Under → over (at `high` or above, or tripped) → under (at `low` or below). */
export class Watermark {
  readonly thresholds: Thresholds
  #value: number | undefined
  #isOver = false

  /** @throws RangeError when `low` is not below `high` */
  constructor(thresholds: Thresholds) {
    if (!(thresholds.low < thresholds.high))
      throw new RangeError('the low-water mark must be below the high-water mark')
    this.thresholds = thresholds
  }

  /** The last value; undefined before the first. */
  get value(): number | undefined {
    return this.#value
  }

  get isOver(): boolean {
    return this.#isOver
  }

  update(value: number): void {
    this.#value = value
    this.#isOver = this.#isOver ? value > this.thresholds.low : value >= this.thresholds.high
  }

  /** Makes the signal over regardless of its last value, until an update is at the low-water mark or below. */
  trip(): void {
    this.#isOver = true
  }
}
