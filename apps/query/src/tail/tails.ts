import { Semaphore } from '@sluice/runtime'
import { QuerySlots } from '../query-slots.ts'
import { ProjectTail, type TailDependencies } from './project-tail.ts'
import { Viewer, type ViewerOptions } from './viewer.ts'

export const tailsLimits = {
  /** Viewers of a project in one process, and of all projects. */
  projectViewersMax: 200,
  viewersMax: 500,
  /** Viewers that are far behind, and read with queries of their own, at once. */
  behindMax: 4,
  /** How far behind a viewer may resume. */
  resumeMs: 86_400_000,
} as const

/** The viewers of all projects. A project without viewers costs nothing. */
export class Tails {
  readonly #dependencies: TailDependencies
  readonly #projects = new Map<string, ProjectTail>()
  readonly #viewers = new Set<Viewer>()
  readonly places = new QuerySlots(tailsLimits.viewersMax, tailsLimits.projectViewersMax)

  constructor(dependencies: Omit<TailDependencies, 'permits'>) {
    // Those that wait go on when the viewers before them have gone.
    const permits = new Semaphore(tailsLimits.behindMax, new AbortController().signal)
    this.#dependencies = { ...dependencies, permits }
  }

  get viewers(): number {
    return this.#viewers.size
  }

  /** @returns removes the viewer */
  add(projectId: string, options: Omit<ViewerOptions, 'viewers'>): () => void {
    const viewer = new Viewer({ ...options, viewers: () => this.viewers })
    const tail = this.#projects.get(projectId) ?? new ProjectTail(projectId, this.#dependencies)
    this.#projects.set(projectId, tail)
    this.#viewers.add(viewer)
    tail.add(viewer)
    return () => {
      this.#viewers.delete(viewer)
      tail.remove(viewer)
      if (tail.size > 0) return
      tail.stop()
      this.#projects.delete(projectId)
    }
  }

  /** Disconnects all viewers. They resume with another process. */
  close(): void {
    for (const viewer of this.#viewers) viewer.options.sink.close()
  }
}
