import { limits } from '@sluice/schema'
import { Problem, problems } from '../problems.ts'

/** The limits of bodies that are being parsed, in bytes after decoding. Parsing takes about three times as much memory. */
const parseLimits = {
  bytesMax: 64 * 1024 * 1024,
  /** Half: one project cannot take all of it. */
  projectBytesMax: 32 * 1024 * 1024,
} as const

if (parseLimits.projectBytesMax < limits.bodyBytesMax)
  throw new Error('projectBytesMax is less than one body')

/** Bounds the memory of bodies that the parser works on, because it may leave them for other requests many times. */
export class ParseBudget {
  readonly #byProject = new Map<string, number>()
  #bytes = 0

  /**
   * @returns releases the bytes
   * @throws Problem `overloaded`
   */
  reserve(projectId: string, bytes: number): () => void {
    const ofProject = this.#byProject.get(projectId) ?? 0
    if (this.#bytes + bytes > parseLimits.bytesMax || ofProject + bytes > parseLimits.projectBytesMax) {
      throw new Problem('overloaded', problems.overloaded.detail, { headers: { 'retry-after': '1' } })
    }
    this.#bytes += bytes
    this.#byProject.set(projectId, ofProject + bytes)
    return () => this.#release(projectId, bytes)
  }

  #release(projectId: string, bytes: number): void {
    this.#bytes -= bytes
    const left = (this.#byProject.get(projectId) ?? 0) - bytes
    if (left > 0) this.#byProject.set(projectId, left)
    else this.#byProject.delete(projectId)
  }
}
