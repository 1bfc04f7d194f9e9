/** What the triggers of the Helm chart read from `/metrics`. */
export interface QueueSignals {
  /** `max(sluice_queue_oldest_age_seconds)` */
  readonly oldestAgeS: number
  /** `sum(max by (shard) (sluice_queue_rows))` */
  readonly rows: number
}

/** `worker.autoscaling` of the Helm chart. */
export interface ScalingTargets {
  readonly oldestAgeS: number
  readonly rowsPerWorker: number
  readonly workersMin: number
  readonly workersMax: number
  /** A worker stops when no result of this time requested it. */
  readonly scaleDownMs: number
}

/** The HorizontalPodAutoscaler of Kubernetes changes nothing while a signal differs from its target by less than this share. */
const TOLERANCE = 0.1

/**
 * The number of workers that the triggers request, as the HorizontalPodAutoscaler of KEDA computes it. The age is a value of the whole
 * installation (`Value`), the rows are divided by the workers (`AverageValue`). The higher result counts.
 */
export function requestedWorkers(signals: QueueSignals, workers: number, targets: ScalingTargets): number {
  const ageRatio = signals.oldestAgeS / targets.oldestAgeS
  const rowsRatio = signals.rows / (targets.rowsPerWorker * workers)
  const byAge = isWithinTolerance(ageRatio) ? workers : Math.ceil(workers * ageRatio)
  const byRows = isWithinTolerance(rowsRatio) ? workers : Math.ceil(signals.rows / targets.rowsPerWorker)
  return Math.min(targets.workersMax, Math.max(targets.workersMin, byAge, byRows))
}

function isWithinTolerance(ratio: number): boolean {
  return Math.abs(ratio - 1) <= TOLERANCE
}

/** Starts workers at once, and stops them only when no result of the last `scaleDownMs` requested them. */
export class ScalingRule {
  readonly #targets: ScalingTargets
  #results: readonly { readonly atMs: number; readonly workers: number }[] = []

  constructor(targets: ScalingTargets) {
    this.#targets = targets
  }

  /**
   * @param signals undefined if no process exports them: then nothing changes
   * @param nowMs monotonic
   * @returns how many workers there should be
   */
  decide(signals: QueueSignals | undefined, workers: number, nowMs: number): number {
    if (signals === undefined) return workers
    const requested = requestedWorkers(signals, workers, this.#targets)
    const recent = this.#results.filter(({ atMs }) => atMs > nowMs - this.#targets.scaleDownMs)
    this.#results = [...recent, { atMs: nowMs, workers: requested }]
    return Math.max(...this.#results.map((result) => result.workers))
  }
}
