import { PeriodicTask } from '@sluice/runtime'
import type { CompletePoint } from './visibility.ts'

/** Well below the time after which it is an alert. A question costs Redis a write to its disk or two. */
const CHECK_INTERVAL_MS = 5_000

/** Measures how far the time up to which everything can be seen is behind. It asks regularly, also while nobody reads. */
export class CompleteLag {
  readonly #completePoint: CompletePoint
  readonly #wallMs: () => number
  readonly #task: PeriodicTask
  #seconds: number | undefined

  /** @param wallMs the clock by which entries are received */
  constructor(completePoint: CompletePoint, wallMs: () => number) {
    this.#completePoint = completePoint
    this.#wallMs = wallMs
    this.#task = new PeriodicTask(CHECK_INTERVAL_MS, () => this.check())
  }

  /** At the last answer. Infinite: the time is not known. Undefined before the first answer. */
  get seconds(): number | undefined {
    return this.#seconds
  }

  async check(): Promise<void> {
    const untilMs = await this.#completePoint.until().catch(() => null)
    this.#seconds = untilMs === null ? Infinity : Math.max(0, this.#wallMs() - untilMs) / 1_000
  }

  stop(): void {
    this.#task.stop()
  }
}
