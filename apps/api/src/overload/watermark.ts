/** Where a signal is too high, and where it is low again. */
export interface Marks {
  readonly high: number
  /** Below `high`, so that a signal that stays near its mark does not refuse every other second. */
  readonly low: number
}

/** A signal with two marks. Under → over (at `high` or above, or tripped) → under (at `low` or below). */
export class Watermark {
  readonly marks: Marks
  #value: number | undefined
  #isOver = false

  /** @throws RangeError when the marks are not in order */
  constructor(marks: Marks) {
    if (!(marks.low < marks.high))
      throw new RangeError('the low-water mark must be below the high-water mark')
    this.marks = marks
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
    this.#isOver = this.#isOver ? value > this.marks.low : value >= this.marks.high
  }

  /** Over, whatever the last value was: until a value says otherwise. */
  trip(): void {
    this.#isOver = true
  }
}
