import { isClean, type Finding, type StoredCounts } from './audit.ts'
import { isEmpty, type QueueCounts } from './drain.ts'
import type { FaultRecord } from './injector.ts'
import type { Journal } from './journal.ts'
import type { LogFindings } from './process-logs.ts'
import { describeFault } from './schedule.ts'
import type { Settlement } from './settle.ts'
import { tally } from './tally.ts'
import type { UnexpectedExit, Victim } from './victim.ts'

/** What a run was, and what it showed. */
export interface Report {
  readonly seed: number
  readonly minutes: number
  /** Nothing lost, doubled or stored though rejected, the queue empty, and no process ended by itself. */
  readonly passed: boolean
  readonly faults: Readonly<Record<string, number>>
  /** kill -9, by the process's name, and in all. */
  readonly kills: Readonly<Record<string, number>>
  /** Faults that found nothing to do: the process was down already, or nothing passed the link. */
  readonly skippedFaults: number
  readonly entries: {
    readonly sent: number
    readonly acknowledged: number
    readonly rejected: number
    readonly refused: number
    readonly unknown: number
  }
  /** How often each status was answered, and each error of a connection came. */
  readonly answers: Readonly<Record<string, number>>
  readonly stored: StoredCounts
  /** How many there are, and up to 20 of them. */
  readonly lost: Listing
  readonly doubled: Listing
  readonly storedThoughRejected: Listing
  readonly foreign: number
  /** From the end of the faults until everything was up, and from then until the queue was empty. */
  readonly recoveryMs: number
  readonly drainMs: number
  readonly queue: QueueCounts
  readonly unexpectedExits: readonly UnexpectedExit[]
  readonly slowStarts: number
  /** How many ended by SIGTERM with which code or signal. */
  readonly terminations: Readonly<Record<string, number>>
  readonly logs: LogFindings
}

export interface Listing {
  readonly count: number
  readonly some: readonly ListedEntry[]
}

export interface ListedEntry {
  readonly message: string
  readonly outcome: string
  readonly rows: number
  readonly deadLetters: number
  /** Seconds after the load had begun. */
  readonly sentAtS: number
  /** The faults that were under way around then. */
  readonly during: readonly string[]
}

export interface RunFacts extends Settlement {
  readonly seed: number
  readonly minutes: number
  readonly startedAtMs: number
  readonly journal: Journal
  readonly records: readonly FaultRecord[]
  readonly victims: readonly Victim[]
  readonly recoveryMs: number
  readonly logs: LogFindings
}

const LISTED_MAX = 20
/** A fault that ended this long before an entry was sent may still have touched it, or one that began this long after. */
const NEARBY_MS = { before: 2_000, after: 5_000 } as const

export function buildReport(facts: RunFacts): Report {
  const { journal, records, victims, findings, queue, logs } = facts
  const applied = records.filter((record) => record.applied).map(({ fault }) => fault)
  const kills = applied.flatMap((fault) => (fault.kind === 'kill' ? [fault.process] : []))
  const unexpectedExits = victims.flatMap((victim) => victim.unexpectedExits)
  const list = (entries: readonly Finding[]): Listing => ({
    count: entries.length,
    some: spread(entries, LISTED_MAX).map((entry) => listEntry(entry, facts)),
  })
  return {
    seed: facts.seed,
    minutes: facts.minutes,
    passed: isClean(findings) && isEmpty(queue) && unexpectedExits.length + logs.fatal.length === 0,
    faults: tally(applied.map(({ kind }) => kind)),
    kills: { ...tally(kills), total: kills.length },
    skippedFaults: records.length - applied.length,
    entries: {
      sent: journal.size,
      acknowledged: journal.count('acknowledged'),
      rejected: journal.count('rejected'),
      refused: journal.count('refused'),
      unknown: journal.count('unknown'),
    },
    answers: Object.fromEntries(journal.answers),
    stored: facts.stored,
    lost: list(findings.lost),
    doubled: list(findings.doubled),
    storedThoughRejected: list(findings.storedThoughRejected),
    foreign: findings.foreign.length,
    recoveryMs: Math.round(facts.recoveryMs),
    drainMs: Math.round(facts.drainMs),
    queue,
    unexpectedExits,
    slowStarts: victims.reduce((sum, { slowStarts }) => sum + slowStarts, 0),
    terminations: tally(
      victims.flatMap(({ name, terminations }) =>
        terminations.map(({ code, signal }) => `${name} ${signal ?? `exit code ${code ?? '?'}`}`),
      ),
    ),
    logs,
  }
}

/** Items from all over: neighbours mostly tell the same story. */
function spread<T>(items: readonly T[], max: number): T[] {
  const step = Math.ceil(items.length / max)
  return items.filter((_item, index) => index % step === 0)
}

function listEntry({ number, sentAtMs, outcome, rows, deadLetters }: Finding, facts: RunFacts): ListedEntry {
  const during = facts.records.filter(
    ({ startedAtMs, endedAtMs = Infinity }) =>
      startedAtMs - NEARBY_MS.after <= sentAtMs && endedAtMs + NEARBY_MS.before >= sentAtMs,
  )
  return {
    message: facts.journal.message(number),
    outcome,
    rows,
    deadLetters,
    sentAtS: Math.round(sentAtMs - facts.startedAtMs) / 1000,
    during: during.map(({ fault }) => describeFault(fault).trim()),
  }
}

/** For people. */
export function describeReport(report: Report): string {
  const { entries, stored, queue, logs } = report
  const lines = [
    `${report.passed ? 'PASSED' : 'FAILED'}  seed ${report.seed}, ${report.minutes} minutes`,
    `faults        ${counts(report.faults)}; ${report.skippedFaults} found nothing to do`,
    `kills         ${counts(report.kills)}`,
    `terminations  ${counts(report.terminations)}`,
    `entries       ${counts(entries)}`,
    `answers       ${counts(report.answers)}`,
    `stored        ${counts(stored)}`,
    `lost          ${report.lost.count}`,
    `doubled       ${report.doubled.count}`,
    `rejected yet stored ${report.storedThoughRejected.count}, never sent yet stored ${report.foreign}`,
    `recovery      ${report.recoveryMs} ms, drain ${report.drainMs} ms`,
    `left in queue wait ${queue.wait}, active ${queue.active}, delayed ${queue.delayed}, failed ${queue.failed}`,
    `exits         ${report.unexpectedExits.length} unexpected, ${report.slowStarts} starts past their deadline`,
    `log lines     fatal ${logs.fatal.length}, error: ${counts(logs.errors)}, no JSON: ${counts(logs.strange)}`,
  ]
  const details = [
    ...[...report.lost.some, ...report.doubled.some, ...report.storedThoughRejected.some].map(describeEntry),
    ...queue.failedReasons.map((reason) => `  failed job: ${reason}`),
    ...report.unexpectedExits.map((exit) => `  ${exit.process} ended: ${exit.signal ?? `code ${exit.code}`}`),
    ...logs.fatal.map((line) => `  ${line.slice(0, 300)}`),
  ]
  return [...lines, ...details, ''].join('\n')
}

function describeEntry(entry: ListedEntry): string {
  const { message, outcome, rows, deadLetters, sentAtS, during } = entry
  return (
    `  ${message}: ${outcome}, ${rows} rows, ${deadLetters} dead letters, sent at ${sentAtS} s\n` +
    during.map((fault) => `      ${fault}`).join('\n')
  )
}

function counts(record: Readonly<Record<string, number>> | object): string {
  const text = Object.entries(record).map(([name, count]) => `${name} ${String(count)}`)
  return text.length === 0 ? 'none' : text.join(', ')
}
