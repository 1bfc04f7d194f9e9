import type { ProcessSize } from '../../bench/src/measure/process-meter.ts'
import type { FuzzRequest } from './fuzz-request.ts'
import type { Verdict } from './judge.ts'

const FAULTS_KEPT = 20
const SENT_CHARACTERS_MAX = 4_000
const FINDINGS_SHOWN = 20

/** Counts the responses of a run, and the rows that they have promised. */
export class Ledger {
  /** Requests with a wrong response, each with the options that repeat it. */
  readonly faults: string[] = []
  readonly answers = new Map<string, number>()
  readonly endings = new Map<string, number>()
  faultCount = 0
  requests = 0
  /** Rows that were accepted from requests whose responses were all read, and from the others. */
  exactRows = 0
  tornRows = 0
  readonly #seed: number

  constructor(seed: number) {
    this.#seed = seed
  }

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
    const options = `--seed ${this.#seed} --only ${number}`
    this.faults.push(`FAULT of request ${number} (${options}): ${what}\n  ${mutations.join('; ')}\n  ${sent}`)
  }
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

export type RowCounts = Readonly<Record<string, number>>

export interface Report {
  readonly seed: number
  readonly ledger: Ledger
  readonly canaries: number
  readonly sendMs: number
  /** The API after the warm-up and at the end, both at rest. */
  readonly sizes: { readonly before: ProcessSize; readonly after: ProcessSize }
  readonly rows: RowCounts
  /** What is wrong after the run, independent of a single request. */
  readonly findings: readonly string[]
}

export function hasPassed({ ledger, findings }: Report): boolean {
  return ledger.faultCount === 0 && findings.length === 0
}

const list = (counts: Iterable<readonly [string, number]>): string =>
  [...counts].map(([name, number]) => `${name} ${number}`).join(', ')
const describeSize = ({ residentBytes, handles }: ProcessSize): string =>
  `${Math.round(residentBytes / 1_048_576)} MiB and ${handles} handles`

export function describeReport(report: Report): string {
  const { seed, ledger, canaries, sendMs, sizes, rows, findings } = report
  const answers = [...ledger.answers].toSorted(([, a], [, b]) => b - a)
  const perSecond = Math.round(ledger.requests / (sendMs / 1_000))
  return [
    `${ledger.requests} requests of seed ${seed} in ${(sendMs / 1_000).toFixed(1)} s, ${perSecond} per second`,
    `connections: ${list(ledger.endings)}`,
    'answers:',
    ...answers.map(([label, number]) => `  ${String(number).padStart(8)}  ${label}`),
    `rows accepted: ${ledger.exactRows}, and ${ledger.tornRows} of torn requests; canaries sent: ${canaries}`,
    `rows stored: ${list(Object.entries(rows))}`,
    `API after the warm-up: ${describeSize(sizes.before)}; at the end: ${describeSize(sizes.after)}`,
    ...ledger.faults,
    ...findings.slice(0, FINDINGS_SHOWN).map((finding) => `FINDING: ${finding.slice(0, 1_000)}`),
    `${ledger.faultCount} faults, ${findings.length} findings: ${hasPassed(report) ? 'passed' : 'FAILED'}`,
  ].join('\n')
}
