import type { ServerResponse } from 'node:http'
import type { BodyBudget, BodyHolder, ProjectBodies } from '../overload/body-budget.ts'

/** Smaller answers are not counted: the operating system takes them at once. */
const COUNTED_BYTES_MIN = 64 * 1024
/** 13 MB in 60 s are 1.7 Mbit/s. A client that reads a part every minute would use up the budget of all projects for long. */
const READ_MS_MAX = 60_000

/** What the budget of bodies holds for an answer, until its client has read it or closes the connection. */
export class HeldAnswer implements BodyHolder {
  readonly project: BodyHolder['project']
  projectBodies: ProjectBodies | null = null
  bodyBytes = 0
  readonly #bodies: BodyBudget

  constructor(project: BodyHolder['project'], bodies: BodyBudget) {
    this.project = project
    this.#bodies = bodies
  }

  /** Holds further bytes of the answer. @throws Problem `overloaded` */
  hold(bytes: number): void {
    if (!this.#bodies.hold(this, bytes)) throw this.#bodies.reject(this)
  }

  release(): void {
    this.#bodies.release(this)
  }

  /** To be called before the answer is sent. Closes the connection of a client that takes too long to read it. */
  releaseAfter(response: ServerResponse): void {
    // A response whose connection is closed emits no further event.
    if (this.bodyBytes < COUNTED_BYTES_MIN || response.closed || response.destroyed) {
      this.release()
      return
    }
    const timer = setTimeout(() => response.destroy(), READ_MS_MAX)
    response.once('close', () => {
      clearTimeout(timer)
      this.release()
    })
  }
}
