import { integer, pause, pick, type Random } from '@sluice/harness'
import { ProcessError, type SupervisedProcess } from '@sluice/local'

/** Between two kills: long enough for requests in all states, short enough for many kills. */
const PAUSE_MS = { min: 300, max: 2_500 } as const
const DOWN_MS = { min: 0, max: 1_500 } as const

/** Kills one of some processes again and again, and starts it anew. */
export class Killer {
  readonly kills: Record<string, number> = {}
  readonly #victims: readonly SupervisedProcess[]
  readonly #random: Random
  readonly #stopping = new AbortController()
  #running: Promise<void> | undefined

  constructor(victims: readonly SupervisedProcess[], random: Random) {
    this.#victims = victims
    this.#random = random
  }

  get count(): number {
    return Object.values(this.kills).reduce((sum, each) => sum + each, 0)
  }

  start(): void {
    this.#running = this.#run()
  }

  /** Resolves when all processes run. @throws the error of a start that failed */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await pause(integer(this.#random, PAUSE_MS.min, PAUSE_MS.max), this.#stopping.signal)
      const victim = pick(this.#random, this.#victims)
      await victim.stop({ signal: 'SIGKILL' })
      const name = victim.name.replace(/-\d+$/, '')
      this.kills[name] = (this.kills[name] ?? 0) + 1
      await pause(integer(this.#random, DOWN_MS.min, DOWN_MS.max), this.#stopping.signal)
      await this.#revive(victim)
    }
  }

  /** A start may fail once, for example because a killed process still holds a lock. */
  async #revive(victim: SupervisedProcess): Promise<void> {
    try {
      await victim.start()
    } catch (error) {
      if (!(error instanceof ProcessError)) throw error
      await victim.start()
    }
  }
}
