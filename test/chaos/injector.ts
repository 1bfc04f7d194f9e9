import type { Cluster } from './cluster.ts'
import { pause } from './pause.ts'
import type { Fault } from './schedule.ts'

/** A fault as it happened. Times are milliseconds on the clock of `performance.now()`. */
export interface FaultRecord {
  readonly fault: Fault
  readonly startedAtMs: number
  /** When its victim was up again, or its link whole. */
  endedAtMs: number | undefined
  /** False when there was nothing to do it to: the process was down already. */
  applied: boolean
}

/** Lets a schedule's faults happen. They may overlap. */
export class Injector {
  readonly records: FaultRecord[] = []
  readonly #cluster: Cluster
  readonly #log: (fault: Fault) => void
  readonly #underWay: Promise<void>[] = []

  /** @param log told of each fault as it begins */
  constructor(cluster: Cluster, log: (fault: Fault) => void) {
    this.#cluster = cluster
    this.#log = log
  }

  /** Resolves when the last fault has begun. */
  async run(faults: readonly Fault[]): Promise<void> {
    const startMs = performance.now()
    for (const fault of faults) {
      await pause(startMs + fault.atMs - performance.now())
      this.#log(fault)
      this.#underWay.push(this.#apply(fault))
    }
    await pause(0)
  }

  /** Resolves when all is over; to be called after the cluster was healed. */
  async settle(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  async #apply(fault: Fault): Promise<void> {
    const record: FaultRecord = { fault, startedAtMs: performance.now(), endedAtMs: undefined, applied: true }
    this.records.push(record)
    record.applied = await this.#happen(fault)
    record.endedAtMs = performance.now()
  }

  async #happen(fault: Fault): Promise<boolean> {
    if ('process' in fault) {
      const victim = this.#cluster.victim(fault.process)
      if (fault.kind === 'kill') return victim.kill(fault.downMs)
      if (fault.kind === 'terminate') return victim.terminate(fault.downMs)
      return victim.freeze(fault.forMs)
    }
    const link = this.#cluster.linkNamed(fault.link)
    if (fault.kind === 'reset') return link.reset() > 0
    const end = pause(fault.forMs, this.#cluster.healing)
    if (fault.kind === 'black-hole') {
      link.hold(fault.direction)
      await end
      if (fault.ending === 'reset') link.reset()
      link.resume()
      return true
    }
    const cutsBefore = link.cuts
    link.armCut(fault)
    await end
    link.disarmCut()
    return link.cuts > cutsBefore
  }
}
