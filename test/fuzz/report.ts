import type { ProcessSize } from '../../bench/src/measure/process-size.ts'
import type { Ledger } from './ledger.ts'

/** How many rows each project has, and how many rows ClickHouse has refused. */
export type RowCounts = Readonly<Record<string, number>>

/** What a run was, and what it showed. */
export interface Report {
  readonly seed: number
  readonly ledger: Ledger
  /** How many known good entries were sent beside the requests. */
  readonly sentinels: number
  readonly sendMs: number
  /** The API after the warm-up and at the end, both at rest. */
  readonly sizes: { readonly before: ProcessSize; readonly after: ProcessSize }
  readonly rows: RowCounts
  /** How long this process did not run, each time that it did not. */
  readonly standstillsMs: readonly number[]
  /** What is wrong with the system after the run, whichever request it was. */
  readonly findings: readonly string[]
}

const FINDINGS_SHOWN = 20

export function hasPassed({ ledger, findings }: Report): boolean {
  return ledger.faultCount === 0 && findings.length === 0
}

export function describeReport(report: Report): string {
  const { seed, ledger, sentinels, sendMs, sizes, rows, findings } = report
  const answers = [...ledger.answers].toSorted(([, a], [, b]) => b - a)
  return [
    `${ledger.requests} requests of seed ${seed} in ${(sendMs / 1_000).toFixed(1)} s, ${Math.round(ledger.requests / (sendMs / 1_000))} a second`,
    `connections: ${[...ledger.endings].map(([ending, count]) => `${ending} ${count}`).join(', ')}`,
    'answers:',
    ...answers.map(([label, count]) => `  ${String(count).padStart(8)}  ${label}`),
    `rows accepted: ${ledger.exactRows} and ${ledger.tornRows} of torn requests; sentinels sent: ${sentinels}`,
    `rows stored: ${Object.entries(rows)
      .map(([name, count]) => `${name} ${count}`)
      .join(', ')}`,
    `the API after the warm-up: ${describeSize(sizes.before)}; at the end: ${describeSize(sizes.after)}`,
    describeFaults(seed, ledger),
    describeStandstills(report.standstillsMs),
    ...findings.slice(0, FINDINGS_SHOWN).map((finding) => `FINDING: ${finding.slice(0, 1_000)}`),
    `${ledger.faultCount} faults, ${findings.length} findings: ${hasPassed(report) ? 'passed' : 'FAILED'}`,
  ]
    .filter((line) => line !== '')
    .join('\n')
}

function describeSize({ residentBytes, handles }: ProcessSize): string {
  return `${Math.round(residentBytes / 1_048_576)} MiB and ${handles} handles`
}

/** The faults, each with what sends its request again. */
export function describeFaults(seed: number, { faults }: Ledger): string {
  return faults
    .map(
      ({ number, what, mutations, sent }) =>
        `FAULT of request ${number} (--seed ${seed} --only ${number}): ${what}\n  ${mutations.join('; ')}\n  ${sent}`,
    )
    .join('\n')
}

function describeStandstills(standstillsMs: readonly number[]): string {
  if (standstillsMs.length === 0) return ''
  return `THE FUZZER ITSELF STOOD STILL for ${standstillsMs.join(', ')} ms: what was late then tells nothing of the API`
}
