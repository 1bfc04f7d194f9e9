import type { Finding } from '@sluice/harness/audit'
import type { Journal } from '@sluice/harness/journal'
import { type LogFindings, tally } from '@sluice/harness/process-logs'
import { describeSettlement, isExactlyOnce } from '@sluice/harness/settle'
import type { ChaosSettlement } from './chaos-installation.ts'
import type { FaultRecord } from './injector.ts'
import type { ReaderFindings } from './reader.ts'
import { describeFault } from './schedule.ts'
import type { Victim } from './victim.ts'

export interface Report {
  /**
   * No entry is lost, duplicated, or stored although rejected; none appeared after a reader was told that it has all of that time; the queue is
   * empty; and no process exited by itself.
   */
  readonly passed: boolean
  readonly acknowledged: number
  /** How often a process was killed by `kill -9`. */
  readonly kills: number
  readonly text: string
}

export interface RunFacts extends ChaosSettlement {
  readonly seed: number
  readonly minutes: number
  readonly startedAtMs: number
  readonly journal: Journal
  readonly records: readonly FaultRecord[]
  readonly victims: readonly Victim[]
  readonly recoveryMs: number
  readonly logs: LogFindings
  readonly reading: ReaderFindings
}

/** Of the entries that are lost, and the same for those that are duplicated or stored although rejected. */
const LISTED_MAX = 20
/** A fault may affect an entry that is sent this long after its end, or this long before its beginning. */
const NEARBY_MS = { before: 2_000, after: 5_000 } as const

export function buildReport(facts: RunFacts): Report {
  const { journal, records, victims, findings, logs, reading } = facts
  const applied = records.filter((record) => record.applied).map(({ fault }) => fault)
  const kills = applied.flatMap((fault) => (fault.kind === 'kill' ? [fault.process] : []))
  const exits = victims.flatMap((victim) => victim.unexpectedExits)
  const slowStarts = victims.reduce((sum, victim) => sum + victim.slowStarts, 0)
  const terminations = victims.flatMap((victim) =>
    victim.terminations.map(({ code, signal }) => `${victim.name} ${signal ?? `exit code ${code ?? '?'}`}`),
  )
  const passed =
    isExactlyOnce(facts) &&
    isBalanced(facts) &&
    reading.answers > 0 &&
    exits.length + logs.fatal.length + reading.wrong.length === 0
  const wrong = [findings.lost, findings.doubled, findings.storedThoughRejected]
  const text = [
    `${passed ? 'PASSED' : 'FAILED'}  seed ${facts.seed}, ${facts.minutes} minutes`,
    // Those without an effect: the process was already down, or the link had no traffic.
    `faults        ${counts(tally(applied.map(({ kind }) => kind)))}; ${records.length - applied.length} had no effect`,
    `kills         ${counts(tally(kills))}, total ${kills.length}`,
    `terminations  ${counts(tally(terminations))}`,
    `answers       ${counts(Object.fromEntries(journal.answers))}`,
    `accounts      ${counts(facts.accounts)}, according to the metrics`,
    `reader        ${reading.answers} answers, of which ${reading.wrong.length} were not complete; at most ${reading.behindMaxMs} ms behind`,
    `recovery      ${Math.round(facts.recoveryMs)} ms`,
    `exits         ${exits.length} unexpected, ${slowStarts} starts missed their deadline`,
    `log lines     fatal ${logs.fatal.length}, error: ${counts(logs.errors)}, not JSON: ${counts(logs.strange)}`,
    describeSettlement(journal, facts),
    ...wrong.flatMap((entries) => spread(entries, LISTED_MAX).map((entry) => listEntry(entry, facts))),
    ...reading.wrong.slice(0, LISTED_MAX).map((line) => `  ${line}`),
    ...exits.map((exit) => `  ${exit.process} exited: ${exit.signal ?? `code ${exit.code}`}`),
    ...logs.fatal.map((line) => `  ${line.slice(0, 300)}`),
  ].join('\n')
  return { passed, acknowledged: journal.count('acknowledged'), kills: kills.length, text }
}

/** Whether the metrics say of the rows what is true: nothing is queued, and the tables have what was added. */
function isBalanced({ accounts, stored }: RunFacts): boolean {
  const { added, inserted, deadLettered } = accounts
  return added === inserted + deadLettered && inserted === stored.rows && deadLettered === stored.deadLetters
}

/** Evenly spaced items. Neighbouring entries usually have the same cause. */
function spread<T>(items: readonly T[], max: number): T[] {
  const step = Math.ceil(items.length / max)
  return items.filter((_item, index) => index % step === 0)
}

/** An entry, and the faults at about its time. */
function listEntry({ number, sentAtMs, outcome, rows, deadLetters }: Finding, facts: RunFacts): string {
  const during = facts.records.filter(
    ({ startedAtMs, endedAtMs = Infinity }) =>
      startedAtMs - NEARBY_MS.after <= sentAtMs && endedAtMs + NEARBY_MS.before >= sentAtMs,
  )
  const sentAtS = Math.round(sentAtMs - facts.startedAtMs) / 1000
  return [
    `  ${facts.journal.message(number)}: ${outcome}, ${rows} rows, ${deadLetters} dead letters, sent at ${sentAtS} s`,
    ...during.map(({ fault }) => `      ${describeFault(fault).trim()}`),
  ].join('\n')
}

function counts(record: Readonly<Record<string, number>> | object): string {
  const all = Object.entries(record).map(([name, count]) => `${name} ${String(count)}`)
  return all.length === 0 ? 'none' : all.join(', ')
}
