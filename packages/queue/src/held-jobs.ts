/** A job that this worker has locked. */
export interface HeldJob {
  readonly id: string
  /** The token of its lock. */
  readonly token: string
  /** Its size in bytes of base64. */
  readonly bytes: number
}

/** The jobs in hand, by id. */
export class HeldJobs {
  readonly #jobs = new Map<string, HeldJob>()
  /** The jobs whose locks may have been released. */
  readonly #releasing = new Set<HeldJob>()
  #bytes = 0

  get size(): number {
    return this.#jobs.size
  }

  get bytes(): number {
    return this.#bytes
  }

  /** @returns whether the job is new. Otherwise its lock had expired, and it was fetched a second time: it has a new token now. */
  add(job: HeldJob): boolean {
    const isNew = !this.#jobs.has(job.id)
    this.forget([job.id])
    this.#jobs.set(job.id, job)
    this.#bytes += job.bytes
    return isNew
  }

  /** Those of the jobs that are in hand, in the order of the ids. */
  of(ids: readonly string[]): HeldJob[] {
    return ids.flatMap((id) => this.#jobs.get(id) ?? [])
  }

  /** The jobs whose locks must be renewed. */
  get locked(): HeldJob[] {
    return [...this.#jobs.values()].filter((job) => !this.#releasing.has(job))
  }

  isLocked(job: HeldJob): boolean {
    return this.#jobs.get(job.id) === job && !this.#releasing.has(job)
  }

  /**
   * Runs a step that releases the locks of jobs.
   *
   * @param step resolves to whether it released the locks. Only then the jobs are no longer in hand. After an error they still are:
   *   Redis may not have run the step
   */
  async release(jobs: readonly HeldJob[], step: () => Promise<boolean>): Promise<boolean> {
    for (const job of jobs) this.#releasing.add(job)
    try {
      const isReleased = await step()
      // A job that was fetched again meanwhile has a new lock.
      if (isReleased) this.forget(jobs.filter((job) => this.#jobs.get(job.id) === job).map(({ id }) => id))
      return isReleased
    } finally {
      for (const job of jobs) this.#releasing.delete(job)
    }
  }

  forget(ids: readonly string[]): void {
    for (const id of ids) {
      this.#bytes -= this.#jobs.get(id)?.bytes ?? 0
      this.#jobs.delete(id)
    }
  }
}
