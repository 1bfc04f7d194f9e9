import type { ProcessSize } from '../../bench/src/measure/process-meter.ts'
import type { FuzzRequest } from './fuzz-request.ts'
import type { Verdict } from './judge.ts'

/** A request with a wrong response. */
export interface Fault {
  readonly number: number
  readonly what: string
  readonly mutations: readonly string[]
  /** The bytes that were sent, as a JSON string. */
  readonly sent: string
}

const FAULTS_KEPT = 20
const SENT_CHARACTERS_MAX = 4_000

/** Counts the responses of a run, and the rows that they have promised. */
export class Ledger {
  readonly faults: Fault[] = []
  readonly answers = new Map<string, number>()
  readonly endings = new Map<string, number>()
  faultCount = 0
  requests = 0
  /** Rows that were accepted from requests whose responses were all read, and from the others. */
  exactRows = 0
  tornRows = 0

  answered(request: FuzzRequest, { fault, label, rows }: Verdict): void {
    count(this.answers, label)
    if (request.ending === 'torn' || request.ending === 'abandoned' || request.isCounted === false)
      this.tornRows += rows
    else this.exactRows += rows
    if (fault !== undefined) this.fail(request, fault)
  }

  done(request: FuzzRequest): void {
    this.requests += 1
    count(this.endings, request.ending)
  }

  fail({ number, mutations, pieces }: FuzzRequest, what: string): void {
    this.faultCount += 1
    if (this.faults.length >= FAULTS_KEPT) return
    const sent = JSON.stringify(Buffer.concat(pieces).toString('latin1')).slice(0, SENT_CHARACTERS_MAX)
    this.faults.push({ number, what, mutations, sent })
  }
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

/** The number of rows of each project, and of dead letters. */
export type RowCounts = Readonly<Record<string, number>>

/** The results of a run. */
export interface Report {
  readonly seed: number
  readonly ledger: Ledger
  /** The number of canaries that were sent in parallel with the requests. */
  readonly canaries: number
  readonly sendMs: number
  /** The API after the warm-up and at the end, both at rest. */
  readonly sizes: { readonly before: ProcessSize; readonly after: ProcessSize }
  readonly rows: RowCounts
  /** What is wrong after the run, independent of a single request. */
  readonly findings: readonly string[]
}

const FINDINGS_SHOWN = 20

export function hasPassed({ ledger, findings }: Report): boolean {
  return ledger.faultCount === 0 && findings.length === 0
}

export function describeReport(report: Report): string {
  const { seed, ledger, canaries, sendMs, sizes, rows, findings } = report
  const answers = [...ledger.answers].toSorted(([, a], [, b]) => b - a)
  const perSecond = Math.round(ledger.requests / (sendMs / 1_000))
  return [
    `${ledger.requests} requests of seed ${seed} in ${(sendMs / 1_000).toFixed(1)} s, ${perSecond} per second`,
    `connections: ${[...ledger.endings].map(([ending, number]) => `${ending} ${number}`).join(', ')}`,
    'answers:',
    ...answers.map(([label, number]) => `  ${String(number).padStart(8)}  ${label}`),
    `rows accepted: ${ledger.exactRows}, and ${ledger.tornRows} of torn requests; canaries sent: ${canaries}`,
    `rows stored: ${Object.entries(rows)
      .map(([name, number]) => `${name} ${number}`)
      .join(', ')}`,
    `API after the warm-up: ${describeSize(sizes.before)}; at the end: ${describeSize(sizes.after)}`,
    describeFaults(seed, ledger),
    ...findings.slice(0, FINDINGS_SHOWN).map((finding) => `FINDING: ${finding.slice(0, 1_000)}`),
    `${ledger.faultCount} faults, ${findings.length} findings: ${hasPassed(report) ? 'passed' : 'FAILED'}`,
  ]
    .filter((line) => line !== '')
    .join('\n')
}

function describeSize({ residentBytes, handles }: ProcessSize): string {
  return `${Math.round(residentBytes / 1_048_576)} MiB and ${handles} handles`
}

/** The faults, each with the options that repeat its request. */
export function describeFaults(seed: number, { faults }: Ledger): string {
  return faults
    .map(
      ({ number, what, mutations, sent }) =>
        `FAULT of request ${number} (--seed ${seed} --only ${number}): ${what}\n  ${mutations.join('; ')}\n  ${sent}`,
    )
    .join('\n')
}
