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

/**
 * Injects the faults of a schedule, which may overlap. Resolves when the last fault has begun.
 *
 * @param log called when a fault begins
 * @returns the faults as they happen, and a promise that all have ended, which they do when the installation is healed
 */
export async function injectFaults(
  installation: ChaosInstallation,
  faults: readonly Fault[],
  log: (fault: Fault) => void,
): Promise<{ records: readonly FaultRecord[]; ended: Promise<unknown> }> {
  const records: FaultRecord[] = []
  const running: Promise<void>[] = []
  const apply = async (fault: Fault): Promise<void> => {
    const record: FaultRecord = { fault, startedAtMs: performance.now(), endedAtMs: undefined, applied: true }
    records.push(record)
    record.applied = await inject(installation, fault)
    record.endedAtMs = performance.now()
  }
  const startMs = performance.now()
  for (const fault of faults) {
    await pause(startMs + fault.atMs - performance.now())
    log(fault)
    running.push(apply(fault))
  }
  return { records, ended: Promise.all(running) }
}

/** @returns whether the fault had an effect */
async function inject(installation: ChaosInstallation, fault: Fault): Promise<boolean> {
  const end = (): Promise<void> => pause('forMs' in fault ? fault.forMs : 0, installation.healing)
  const between = async (begin: () => unknown, finish: () => unknown): Promise<true> => {
    await begin()
    await end()
    await finish()
    return true
  }
  if ('process' in fault) {
    const victim = installation.victim(fault.process)
    if (fault.kind === 'kill') return victim.kill(fault.downMs)
    if (fault.kind === 'terminate') return victim.terminate(fault.downMs)
    if (fault.kind === 'freeze') return victim.freeze(fault.forMs)
    if (fault.kind === 'power') return victim.cutPower(installation.disk(fault.process), fault.downMs)
    const shift = (ms: number) => () => installation.shiftClock(fault.process, ms)
    await between(shift(fault.shiftMs), shift(0))
    return victim.process.running
  }
  if ('link' in fault) {
    const link = installation.linkNamed(fault.link)
    if (fault.kind === 'reset') return link.reset() > 0
    if (fault.kind === 'silence') return link.silence() > 0
    if (fault.kind === 'unplug')
      return between(
        () => link.down(),
        () => link.up(),
      )
    if (fault.kind === 'black-hole') {
      const { direction, ending } = fault
      await between(
        () => link.hold(direction),
        () => ending === 'reset' && link.reset(),
      )
      link.resume()
      return true
    }
    const cutsBefore = link.cuts
    await between(
      () => link.armCut(fault),
      () => link.disarmCut(),
    )
    return link.cuts > cutsBefore
  }
  if (fault.kind === 'rule')
    return between(
      () => installation.rejectBrackets(true),
      () => installation.rejectBrackets(false),
    )
  if (fault.kind === 'memory')
    return between(
      () => installation.limitMemory(fault.bytes),
      () => installation.limitMemory(undefined),
    )
  const links = installation.linksTo(fault.server)
  return between(
    () => Promise.all(links.map((link) => link.down())),
    () => Promise.all(links.map((link) => link.up())),
  )
}
