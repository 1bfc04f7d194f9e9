import { type Logger, type Readiness, type RedisConnection, RegularCheck } from '@sluice/runtime'
import type { RegistryIdentity, RegistryState } from './identity.ts'

const remedy = 'Restore them: ./sluice projects import FILE, or ./sluice projects accept'
/** What is wrong in a state, and what to do. */
export const registryProblems: Partial<Record<RegistryState, string>> = {
  lost: `Redis has lost its data: it has no projects. ${remedy}`,
  foreign: `Redis has lost its data: it has other projects than ClickHouse has rows of. ${remedy}`,
}

interface RegistryCheckOptions {
  readonly redis: RedisConnection
  readonly identity: Pick<RegistryIdentity, 'read' | 'reconcile'>
  /** The id of the installation in ClickHouse, for processes that have a connection to it. */
  readonly ids?: {
    readonly find: () => Promise<string | undefined>
    readonly add: (id: string) => Promise<void>
  }
  readonly logger: Logger
}

/**
 * Checks that the projects in Redis are those of the installation: after each connect, and every five seconds. A key that is not in Redis
 * is not judged by this check, but by a read of its own.
 */
export class RegistryCheck extends RegularCheck<RegistryCheckOptions> {
  /** Whether the last comparison with ClickHouse has not failed. */
  #isCompared = true
  #problem: string | undefined

  get readiness(): Readiness {
    return { ready: this.#problem === undefined, reasons: this.#problem === undefined ? [] : [this.#problem] }
  }

  /** If Redis or ClickHouse is unavailable, which others report, the last result holds. */
  async check(): Promise<void> {
    const { identity, ids, logger } = this.options
    try {
      if (ids !== undefined) {
        const missing = await identity.reconcile(await ids.find())
        if (missing !== undefined) await ids.add(missing)
      }
      this.#isCompared = true
    } catch (error) {
      // A user without permission for the table, for example. Others report a ClickHouse that is unavailable.
      if (this.#isCompared) logger.warn({ err: error }, 'the id of the installation is not compared')
      this.#isCompared = false
    }
    const state = await identity.read().catch(() => undefined)
    if (state === undefined) return
    const problem = registryProblems[state]
    if (problem !== undefined && problem !== this.#problem) logger.error(problem)
    if (problem === undefined && this.#problem !== undefined)
      logger.info('the projects in Redis are restored')
    this.#problem = problem
  }
}
