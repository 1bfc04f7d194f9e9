import { PeriodicTask } from '@sluice/runtime'
import type { CompletePoint } from './visibility.ts'

/** Well below the time after which it is an alert. A question costs Redis a write to its disk or two. */
const CHECK_INTERVAL_MS = 5_000

/** Measures how far the time up to which everything can be seen is behind. It asks regularly, also while nobody reads. */
export class CompleteLag extends PeriodicTask {
  /** At the last answer. Infinite: the time is not known. Undefined before the first answer. */
  seconds: number | undefined

  /** @param wallMs the clock by which entries are received */
  constructor(completePoint: CompletePoint, wallMs: () => number) {
    super(CHECK_INTERVAL_MS, async () => {
      const untilMs = await completePoint.until().catch(() => null)
      this.seconds = untilMs === null ? Infinity : Math.max(0, wallMs() - untilMs) / 1_000
    })
  }
}
