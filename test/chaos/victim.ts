import { pause } from '@sluice/harness'
import type { PowerDisk } from '@sluice/harness/power-disk'
import { ProcessError, type Exit, type SupervisedProcess } from '@sluice/local'

/** Longer than the deadline of the apps: they exit by themselves, and log the reason. */
const TERMINATE_DEADLINE_MS = 10_000
/** A start fails when Redis or ClickHouse is unavailable for longer than the start deadline. It is then retried. */
const STARTS_MAX = 20

/**
 * A process that faults happen to, and that is started again after each of them.
 *
 * Up ⇄ frozen; up or frozen → (killed, terminated, or exited by itself) down → starting → up. A fault during the start is a crash in the middle of a
 * recovery.
 */
export class Victim {
  readonly process: SupervisedProcess
  /** Exits that no fault of the schedule has caused. */
  readonly unexpectedExits: (Exit & { readonly process: string })[] = []
  /** How the process exited after each SIGTERM. */
  readonly terminations: Exit[] = []
  /** How often it missed its start deadline and was started again. */
  slowStarts = 0
  readonly #healing: AbortSignal
  readonly #stopping: AbortSignal
  #downUntilMs = 0
  /** Until its disk has power again. */
  #powerless: Promise<void> | undefined
  #isExitIntended = false
  #isStarting = false
  #reviving: Promise<void> | undefined

  /**
   * @param signals.healing aborted when the faults end: a process that is down or frozen recovers immediately
   * @param signals.stopping aborted when the run ends: from then on, no process is started again
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

  /** Stops it by SIGKILL, and resolves when it is ready again. @returns false when it was not running */
  async kill(downMs: number): Promise<boolean> {
    return this.#stop(downMs, () => this.process.stop({ signal: 'SIGKILL' }))
  }

  /** Stops it by SIGTERM, and resolves when it is ready again. @returns false when it was not running */
  async terminate(downMs: number): Promise<boolean> {
    return this.#stop(downMs, async () => {
      const { exited } = this.process
      await this.process.stop({ signal: 'SIGTERM', deadlineMs: TERMINATE_DEADLINE_MS })
      this.terminations.push(await exited)
    })
  }

  /** Cuts the power of its disk, and kills it. Resolves when it is ready again. @returns false when it was not running */
  async cutPower(disk: PowerDisk, downMs: number): Promise<boolean> {
    return this.#stop(downMs, async () => {
      const restored = Promise.withResolvers<void>()
      this.#powerless = restored.promise
      // After a power cut, a process acknowledges nothing.
      this.process.kill('SIGSTOP')
      await disk.cutPower()
      await this.process.stop({ signal: 'SIGKILL' })
      await disk.restorePower()
      this.#powerless = undefined
      restored.resolve()
    })
  }

  /** Freezes it by SIGSTOP. @returns false when it was not running */
  async freeze(forMs: number): Promise<boolean> {
    if (!this.process.running) return false
    this.process.kill('SIGSTOP')
    await pause(forMs, this.#healing)
    this.process.kill('SIGCONT')
    return true
  }

  async revive(): Promise<void> {
    if (this.#reviving === undefined && this.process.running) return
    this.#reviving ??= this.#revive().finally(() => {
      this.#reviving = undefined
    })
    await this.#reviving
  }

  /** Stops it permanently, by SIGTERM. */
  async retire(): Promise<Exit | undefined> {
    if (!this.process.running) return undefined
    this.#isExitIntended = true
    const { exited } = this.process
    await this.process.stop({ deadlineMs: TERMINATE_DEADLINE_MS })
    return exited
  }

  async #stop(downMs: number, stop: () => Promise<unknown>): Promise<boolean> {
    if (!this.process.running || this.#powerless !== undefined) return false
    this.#isExitIntended = true
    this.#downUntilMs = performance.now() + downMs
    await stop()
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

  /** Another fault during the wait may prolong it. */
  async #untilMayRun(): Promise<void> {
    await this.#powerless
    for (let leftMs = 1; leftMs > 0 && !this.#healing.aborted;) {
      await pause(this.#downUntilMs - performance.now(), this.#healing)
      leftMs = this.#downUntilMs - performance.now()
    }
  }

  async #start(): Promise<void> {
    this.#isExitIntended = false
    this.#isStarting = true
    const starting = this.process.start()
    void this.#watch()
    try {
      await starting
    } finally {
      this.#isStarting = false
    }
  }

  async #watch(): Promise<void> {
    const { code, signal } = await this.process.exited
    if (this.#isExitIntended || this.#stopping.aborted) return
    // Without a fault, the only source of SIGKILL is the start deadline.
    if (this.#isStarting && signal === 'SIGKILL') this.slowStarts += 1
    else this.unexpectedExits.push({ process: this.name, code, signal })
    // During a start, `#revive` retries.
    if (!this.#isStarting) await this.revive().catch(() => undefined)
  }
}
