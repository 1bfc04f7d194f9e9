import { ProcessError, type Exit, type SupervisedProcess } from '@sluice/local'
import { pause } from './pause.ts'

/** An end of a process that no fault of the schedule asked for. */
export interface UnexpectedExit {
  readonly process: string
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** Longer than the apps' own deadline, so that it is they who give up, and say so. */
const TERMINATE_DEADLINE_MS = 10_000
/** A start fails when what the process needs is away for longer than its deadline; it is tried again for this long. */
const STARTS_MAX = 20

/**
 * A process that faults happen to, and that is brought back after each.
 *
 * Up ⇄ frozen; up or frozen → (killed, terminated, or its own death) down → starting → up. A fault may also come while
 * it is starting: that is a crash amid a recovery.
 */
export class Victim {
  readonly process: SupervisedProcess
  readonly unexpectedExits: UnexpectedExit[] = []
  /** How each SIGTERM ended. */
  readonly terminations: Exit[] = []
  /** How often it was not ready in time and was started again. */
  slowStarts = 0
  readonly #healing: AbortSignal
  readonly #stopping: AbortSignal
  #downUntilMs = 0
  #endIsIntended = false
  #isStarting = false
  #reviving: Promise<void> | undefined

  /**
   * @param signals.healing aborted when faults end: whoever is down or frozen comes back at once
   * @param signals.stopping aborted when everything ends: from then on nobody is brought back
   */
  constructor(process: SupervisedProcess, signals: { healing: AbortSignal; stopping: AbortSignal }) {
    this.process = process
    this.#healing = signals.healing
    this.#stopping = signals.stopping
    void this.#watch()
  }

  get name(): string {
    return this.process.name
  }

  /** Ends it by SIGKILL, and resolves when it is up again. @returns false when it was not running */
  async kill(downMs: number): Promise<boolean> {
    return this.#end(downMs, async () => {
      await this.process.stop({ signal: 'SIGKILL' })
    })
  }

  /** Ends it by SIGTERM, and resolves when it is up again. @returns false when it was not running */
  async terminate(downMs: number): Promise<boolean> {
    return this.#end(downMs, async () => {
      const { exited } = this.process
      await this.process.stop({ signal: 'SIGTERM', deadlineMs: TERMINATE_DEADLINE_MS })
      this.terminations.push(await exited)
    })
  }

  /** Stops it by SIGSTOP for a while. @returns false when it was not running */
  async freeze(forMs: number): Promise<boolean> {
    if (!this.process.running) return false
    this.process.kill('SIGSTOP')
    await pause(forMs, this.#healing)
    this.process.kill('SIGCONT')
    return true
  }

  /** Resolves when it is up; started, if it is down. */
  async revive(): Promise<void> {
    if (this.#reviving === undefined && this.process.running) return
    this.#reviving ??= this.#revive().finally(() => {
      this.#reviving = undefined
    })
    await this.#reviving
  }

  /** Ends it for good, by SIGTERM. */
  async retire(): Promise<Exit | undefined> {
    if (!this.process.running) return undefined
    this.#endIsIntended = true
    const { exited } = this.process
    await this.process.stop({ deadlineMs: TERMINATE_DEADLINE_MS })
    return exited
  }

  async #end(downMs: number, end: () => Promise<void>): Promise<boolean> {
    if (!this.process.running) return false
    this.#endIsIntended = true
    this.#downUntilMs = performance.now() + downMs
    await end()
    await this.revive()
    return true
  }

  async #revive(): Promise<void> {
    for (let start = 1; ; start += 1) {
      await this.#untilMayRun()
      if (this.#stopping.aborted) return
      try {
        await this.#start()
        return
      } catch (error) {
        if (!(error instanceof ProcessError) || start === STARTS_MAX) throw error
      }
    }
  }

  /** A fault during the wait may have made it longer. */
  async #untilMayRun(): Promise<void> {
    for (
      let leftMs = 1;
      leftMs > 0 && !this.#healing.aborted;
      leftMs = this.#downUntilMs - performance.now()
    ) {
      await pause(this.#downUntilMs - performance.now(), this.#healing)
    }
  }

  async #start(): Promise<void> {
    this.#endIsIntended = false
    this.#isStarting = true
    const starting = this.process.start()
    void this.#watch()
    try {
      await starting
    } finally {
      this.#isStarting = false
    }
  }

  /** Notices how the latest run ends. */
  async #watch(): Promise<void> {
    const { code, signal } = await this.process.exited
    if (this.#endIsIntended || this.#stopping.aborted) return
    // Only its own start deadline kills a process that no fault has touched.
    if (this.#isStarting && signal === 'SIGKILL') this.slowStarts += 1
    else this.unexpectedExits.push({ process: this.name, code, signal })
    // While it is starting, whoever starts it tries again.
    if (!this.#isStarting) await this.revive().catch(() => undefined)
  }
}
