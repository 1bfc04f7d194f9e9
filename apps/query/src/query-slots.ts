import { retryAfter } from './problems.ts'

/** Limits the queries that run at once, of each project and of all: those above it are rejected, not delayed. */
export class QuerySlots {
  readonly #max: number
  readonly #projectMax: number
  readonly #byProject = new Map<string, number>()
  #running = 0

  constructor(max: number, projectMax: number) {
    this.#max = max
    this.#projectMax = projectMax
  }

  get running(): number {
    return this.#running
  }

  /** @returns gives the slot back: it must be called once @throws Problem `too_many_queries` */
  take(projectId: string): () => void {
    const ofProject = this.#byProject.get(projectId) ?? 0
    if (this.#running >= this.#max || ofProject >= this.#projectMax) throw retryAfter('too_many_queries')
    this.#running += 1
    this.#byProject.set(projectId, ofProject + 1)
    return () => {
      this.#running -= 1
      const rest = (this.#byProject.get(projectId) ?? 1) - 1
      if (rest === 0) this.#byProject.delete(projectId)
      else this.#byProject.set(projectId, rest)
    }
  }
}
