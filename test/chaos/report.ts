import type { Finding } from '@sluice/harness/audit'
import type { Journal } from '@sluice/harness/journal'
import { type LogFindings, tally } from '@sluice/harness/process-logs'
import { describeSettlement, isExactlyOnce } from '@sluice/harness/settle'
import type { ChaosSettlement } from './chaos-installation.ts'
import type { FaultRecord } from './injector.ts'
import { describeFault } from './schedule.ts'
import type { Victim } from './victim.ts'

/** The results of a run. */
export type Report = ReturnType<typeof buildReport>

export interface RunFacts extends ChaosSettlement {
  readonly seed: number
  readonly minutes: number
  readonly startedAtMs: number
  readonly journal: Journal
  readonly records: readonly FaultRecord[]
  readonly victims: readonly Victim[]
  readonly recoveryMs: number
  readonly logs: LogFindings
}

/** Of the entries that are lost, and the same for those that are duplicated or stored although rejected. */
const LISTED_MAX = 20
/** A fault may affect an entry that is sent this long after its end, or this long before its beginning. */
const NEARBY_MS = { before: 2_000, after: 5_000 } as const

export function buildReport(facts: RunFacts) {
  const { journal, records, victims, findings, logs } = facts
  const applied = records.filter((record) => record.applied).map(({ fault }) => fault)
  const kills = applied.flatMap((fault) => (fault.kind === 'kill' ? [fault.process] : []))
  const unexpectedExits = victims.flatMap((victim) => victim.unexpectedExits)
  return {
    seed: facts.seed,
    minutes: facts.minutes,
    /** No entry is lost, duplicated, or stored although rejected; the queue is empty; and no process exited by itself. */
    passed: isExactlyOnce(facts) && isBalanced(facts) && unexpectedExits.length + logs.fatal.length === 0,
    acknowledged: journal.count('acknowledged'),
    settlement: describeSettlement(journal, facts),
    /** Some of the entries for which the run failed. */
    wrong: [findings.lost, findings.doubled, findings.storedThoughRejected].flatMap((entries) =>
      spread(entries, LISTED_MAX).map((entry) => listEntry(entry, facts)),
    ),
    accounts: facts.accounts,
    faults: tally(applied.map(({ kind }) => kind)),
    /** How often each process was killed by `kill -9`, and the total. */
    kills: { ...tally(kills), total: kills.length },
    /** Faults without an effect: the process was already down, or the link had no traffic. */
    skippedFaults: records.length - applied.length,
    /** How often each status was received, and how often each connection error occurred. */
    answers: Object.fromEntries(journal.answers),
    /** From the end of the faults until all processes were ready. */
    recoveryMs: Math.round(facts.recoveryMs),
    unexpectedExits,
    slowStarts: victims.reduce((sum, { slowStarts }) => sum + slowStarts, 0),
    /** How often each exit code or signal followed a SIGTERM. */
    terminations: tally(
      victims.flatMap(({ name, terminations }) =>
        terminations.map(({ code, signal }) => `${name} ${signal ?? `exit code ${code ?? '?'}`}`),
      ),
    ),
    logs,
  }
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

/** The report for a terminal. */
export function describeReport(report: Report): string {
  const { unexpectedExits, logs } = report
  return [
    `${report.passed ? 'PASSED' : 'FAILED'}  seed ${report.seed}, ${report.minutes} minutes`,
    `faults        ${counts(report.faults)}; ${report.skippedFaults} had no effect`,
    `kills         ${counts(report.kills)}`,
    `terminations  ${counts(report.terminations)}`,
    `answers       ${counts(report.answers)}`,
    `accounts      ${counts(report.accounts)}, according to the metrics`,
    `recovery      ${report.recoveryMs} ms`,
    `exits         ${unexpectedExits.length} unexpected, ${report.slowStarts} starts missed their deadline`,
    `log lines     fatal ${logs.fatal.length}, error: ${counts(logs.errors)}, not JSON: ${counts(logs.strange)}`,
    report.settlement,
    ...report.wrong,
    ...unexpectedExits.map((exit) => `  ${exit.process} exited: ${exit.signal ?? `code ${exit.code}`}`),
    ...logs.fatal.map((line) => `  ${line.slice(0, 300)}`),
    '',
  ].join('\n')
}

function counts(record: Readonly<Record<string, number>> | object): string {
  const all = Object.entries(record).map(([name, count]) => `${name} ${String(count)}`)
  return all.length === 0 ? 'none' : all.join(', ')
}
