import { pause } from '@sluice/harness'
import type { ChaosInstallation } from './chaos-installation.ts'
import type { Fault } from './schedule.ts'

/** A fault as it happened. Times are milliseconds on the clock of `performance.now()`. */
export interface FaultRecord {
  readonly fault: Fault
  readonly startedAtMs: number
  /** When its victim was ready again, or its link healed. */
  endedAtMs: number | undefined
  /** False when it had no effect, for example because the process was already down. */
  applied: boolean
}

/** Injects the faults of a schedule. They may overlap. */
export class Injector {
  readonly records: FaultRecord[] = []
  readonly #installation: ChaosInstallation
  readonly #log: (fault: Fault) => void
  readonly #running: Promise<void>[] = []

  /** @param log called when a fault begins */
  constructor(installation: ChaosInstallation, log: (fault: Fault) => void) {
    this.#installation = installation
    this.#log = log
  }

  /** Resolves when the last fault has begun. */
  async run(faults: readonly Fault[]): Promise<void> {
    const startMs = performance.now()
    for (const fault of faults) {
      await pause(startMs + fault.atMs - performance.now())
      this.#log(fault)
      this.#running.push(this.#apply(fault))
    }
    await pause(0)
  }

  /** Resolves when all faults have ended. Must be called after the installation was healed. */
  async settle(): Promise<void> {
    await Promise.all(this.#running)
  }

  async #apply(fault: Fault): Promise<void> {
    const record: FaultRecord = { fault, startedAtMs: performance.now(), endedAtMs: undefined, applied: true }
    this.records.push(record)
    record.applied = await this.#inject(fault)
    record.endedAtMs = performance.now()
  }

  async #inject(fault: Fault): Promise<boolean> {
    if ('process' in fault) return this.#injectIntoProcess(fault)
    if ('link' in fault) return this.#injectIntoLink(fault)
    const installation = this.#installation
    const end = this.#endOf(fault)
    if (fault.kind === 'outage') {
      const links = installation.linksTo(fault.server)
      await Promise.all(links.map((link) => link.down()))
      await end
      await Promise.all(links.map((link) => link.up()))
    } else if (fault.kind === 'memory') {
      await installation.limitMemory(fault.bytes)
      await end
      await installation.limitMemory(undefined)
    } else {
      await installation.rejectBrackets(true)
      await end
      await installation.rejectBrackets(false)
    }
    return true
  }

  async #injectIntoProcess(fault: Extract<Fault, { process: string }>): Promise<boolean> {
    const installation = this.#installation
    const victim = installation.victim(fault.process)
    if (fault.kind === 'kill') return victim.kill(fault.downMs)
    if (fault.kind === 'terminate') return victim.terminate(fault.downMs)
    if (fault.kind === 'freeze') return victim.freeze(fault.forMs)
    if (fault.kind === 'power') return victim.cutPower(installation.disk(fault.process), fault.downMs)
    await installation.shiftClock(fault.process, fault.shiftMs)
    await this.#endOf(fault)
    await installation.shiftClock(fault.process, 0)
    return victim.process.running
  }

  async #injectIntoLink(fault: Extract<Fault, { link: string }>): Promise<boolean> {
    const link = this.#installation.linkNamed(fault.link)
    if (fault.kind === 'reset') return link.reset() > 0
    if (fault.kind === 'silence') return link.silence() > 0
    const end = this.#endOf(fault)
    if (fault.kind === 'black-hole') {
      link.hold(fault.direction)
      await end
      if (fault.ending === 'reset') link.reset()
      link.resume()
      return true
    }
    if (fault.kind === 'unplug') {
      await link.down()
      await end
      await link.up()
      return true
    }
    const cutsBefore = link.cuts
    link.armCut(fault)
    await end
    link.disarmCut()
    return link.cuts > cutsBefore
  }

  #endOf({ forMs }: { readonly forMs: number }): Promise<void> {
    return pause(forMs, this.#installation.healing)
  }
}
