import type { Finding, StoredCounts } from '@sluice/harness/audit'
import type { QueueCounts } from '@sluice/harness/drain'
import type { Journal } from '@sluice/harness/journal'
import type { Accounts } from '@sluice/harness/metrics'
import { type LogFindings, tally } from '@sluice/harness/process-logs'
import { isExactlyOnce } from '@sluice/harness/settle'
import type { ChaosSettlement } from './chaos-installation.ts'
import type { FaultRecord } from './injector.ts'
import { describeFault } from './schedule.ts'
import type { UnexpectedExit, Victim } from './victim.ts'

/** The results of a run. */
export interface Report {
  readonly seed: number
  readonly minutes: number
  /** No entry is lost, duplicated, or stored although rejected; the queue is empty; and no process exited by itself. */
  readonly passed: boolean
  /** What the metrics say of all rows. */
  readonly accounts: Accounts
  readonly faults: Readonly<Record<string, number>>
  /** How often each process was killed by `kill -9`, and the total. */
  readonly kills: Readonly<Record<string, number>>
  /** Faults without an effect: the process was already down, or the link had no traffic. */
  readonly skippedFaults: number
  readonly entries: {
    readonly sent: number
    readonly acknowledged: number
    readonly rejected: number
    readonly refused: number
    readonly unknown: number
  }
  /** How often each status was answered, and how often each connection error occurred. */
  readonly answers: Readonly<Record<string, number>>
  readonly stored: StoredCounts
  /** Counts, with up to 20 examples. */
  readonly lost: Listing
  readonly doubled: Listing
  readonly storedThoughRejected: Listing
  readonly foreign: number
  /** From the end of the faults until all processes were ready, and from then until the queue was empty. */
  readonly recoveryMs: number
  readonly drainMs: number
  readonly queues: readonly QueueCounts[]
  readonly unexpectedExits: readonly UnexpectedExit[]
  readonly slowStarts: number
  /** How often each exit code or signal followed a SIGTERM. */
  readonly terminations: Readonly<Record<string, number>>
  readonly logs: LogFindings
}

interface Listing {
  readonly count: number
  readonly some: readonly ListedEntry[]
}

interface ListedEntry {
  readonly message: string
  readonly outcome: string
  readonly rows: number
  readonly deadLetters: number
  /** Seconds after the load has begun. */
  readonly sentAtS: number
  /** The faults at about that time. */
  readonly during: readonly string[]
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
}

const LISTED_MAX = 20
/** A fault may affect an entry that is sent this long after its end, or this long before its beginning. */
const NEARBY_MS = { before: 2_000, after: 5_000 } as const

export function buildReport(facts: RunFacts): Report {
  const { journal, records, victims, findings, queues, logs } = facts
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
    passed: isExactlyOnce(facts) && isBalanced(facts) && unexpectedExits.length + logs.fatal.length === 0,
    accounts: facts.accounts,
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
    queues,
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

/** The report as text. */
export function describeReport(report: Report): string {
  const { entries, stored, queues, logs } = report
  const lines = [
    `${report.passed ? 'PASSED' : 'FAILED'}  seed ${report.seed}, ${report.minutes} minutes`,
    `faults        ${counts(report.faults)}; ${report.skippedFaults} had no effect`,
    `kills         ${counts(report.kills)}`,
    `terminations  ${counts(report.terminations)}`,
    `entries       ${counts(entries)}`,
    `answers       ${counts(report.answers)}`,
    `stored        ${counts(stored)}`,
    `accounts      ${counts(report.accounts)}, according to the metrics`,
    `lost          ${report.lost.count}`,
    `duplicated    ${report.doubled.count}`,
    `stored although rejected ${report.storedThoughRejected.count}, although never sent ${report.foreign}`,
    `recovery      ${report.recoveryMs} ms, drain ${report.drainMs} ms`,
    ...queues.map(
      ({ wait, active, delayed, failed }) =>
        `left in queue wait ${wait}, active ${active}, delayed ${delayed}, failed ${failed}`,
    ),
    `exits         ${report.unexpectedExits.length} unexpected, ${report.slowStarts} starts missed their deadline`,
    `log lines     fatal ${logs.fatal.length}, error: ${counts(logs.errors)}, not JSON: ${counts(logs.strange)}`,
  ]
  const details = [
    ...[...report.lost.some, ...report.doubled.some, ...report.storedThoughRejected.some].map(describeEntry),
    ...queues.flatMap(({ failedReasons }) => failedReasons).map((reason) => `  failed job: ${reason}`),
    ...report.unexpectedExits.map(
      (exit) => `  ${exit.process} exited: ${exit.signal ?? `code ${exit.code}`}`,
    ),
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
