import type { Verdict } from './judge.ts'
import type { FuzzRequest } from './fuzz-request.ts'

/** A request whose answer was not as it must be. */
export interface Fault {
  readonly number: number
  readonly what: string
  readonly mutations: readonly string[]
  /** The bytes that were sent, as a JSON text. */
  readonly sent: string
}

const FAULTS_KEPT = 20
const SENT_CHARACTERS_MAX = 4_000

/** What a run's answers were, and what they said is stored. */
export class Ledger {
  readonly faults: Fault[] = []
  readonly answers = new Map<string, number>()
  readonly endings = new Map<string, number>()
  faultCount = 0
  requests = 0
  /** Rows that 202s have promised to requests whose answers were all read, and to the others. */
  exactRows = 0
  tornRows = 0

  answered(request: FuzzRequest, { fault, label, rows }: Verdict): void {
    count(this.answers, label)
    if (request.ending === 'torn' || request.ending === 'abandoned') this.tornRows += rows
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
