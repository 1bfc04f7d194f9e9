import { writeSync } from 'node:fs'
import {
  type ClientOptions,
  type DropReason,
  type Entry,
  type Metadata,
  type Rejection,
  SluiceClient,
} from '@sluice/client'

/** What remains of metadata that the API would reject: enough to find the entry. */
const REDUCED_NAMES_MAX = 100
const REDUCED_CHARACTERS_MAX = 256

const dropReasons: Readonly<Record<DropReason, string>> = {
  overflow: 'dropped: the queue is full',
  retries: 'dropped: the API did not accept them in time',
  'outcome-unknown': 'given up: the API may have stored them, but did not respond',
  unreadable: 'lost: the spool cannot be read',
  closed: 'dropped: the application ended before the API accepted them',
}

/** The client, its reports, and entries that exceed a limit. */
export class EntrySender {
  readonly client: SluiceClient
  readonly reports: Reports
  /** Of the entry that is being sent, by the client. */
  #rejection: Rejection | undefined

  constructor(options: ClientOptions, reports: Reports) {
    this.reports = reports
    let hasWarned = false
    this.client = new SluiceClient({
      ...options,
      onError: ({ message }) => reports.print(message),
      onRejected: (rejection) => {
        // The client passes the entry itself if it rejects it at once. After a response, it passes a JSON string.
        if (typeof rejection.entry === 'string') this.#report(rejection)
        else this.#rejection = rejection
      },
      onDropped: ({ length }, reason) => reports.lost(length, dropReasons[reason]),
      onRetry: ({ hasReceivedResponse, reason }) => {
        if (hasWarned || hasReceivedResponse) return
        hasWarned = true
        // The address may be wrong.
        reports.print(`no response so far: ${reason}. The transport continues to try.`)
      },
    })
  }

  /** Sends an entry. Of metadata that is too large or too deep, only short values are sent. */
  send(entry: Entry): void {
    const first = this.#trySend(entry)
    if (first === undefined) return
    const metadata = reduceMetadata(entry.metadata ?? {}, first.error.message)
    const second = this.#trySend({ ...entry, metadata })
    if (second !== undefined) this.#report(second)
  }

  #trySend(entry: Entry): Rejection | undefined {
    this.#rejection = undefined
    this.client.send(entry)
    return this.#rejection
  }

  #report({ error: { path, message } }: Rejection): void {
    this.reports.lost(1, `rejected: ${path} ${message}`)
  }
}

function reduceMetadata(metadata: Metadata, reason: string): Metadata {
  const short = Object.entries(metadata)
    .filter(([name, value]) => name.length <= REDUCED_CHARACTERS_MAX && isShort(value))
    .slice(0, REDUCED_NAMES_MAX)
  return { ...Object.fromEntries(short), metadataReduced: reason }
}

function isShort(value: unknown): boolean {
  return typeof value === 'string'
    ? value.length <= REDUCED_CHARACTERS_MAX
    : typeof value === 'number' || typeof value === 'boolean'
}

/** A queue that is full drops entries thousands of times per second. */
const REPORT_INTERVAL_MS = 10_000
/** The reasons of rejections come from the API. A faulty one may give a new one for each entry. */
const REASONS_MAX = 20
const OTHER_REASONS = 'lost for other reasons'

/**
 * Reports to operators what happened to entries: numbers and reasons, never what was logged. The first report of a kind is printed at once,
 * further ones are gathered.
 */
export class Reports {
  /** For problems that an operator has to solve. */
  readonly print: (report: string) => void
  readonly #monotonicMs: () => number
  /** By reason: how many entries, and when it was printed. */
  readonly #counts = new Map<string, { entries: number; printedAtMs: number }>()

  constructor(print: (report: string) => void, monotonicMs: () => number) {
    this.print = print
    this.#monotonicMs = monotonicMs
  }

  lost(entries: number, given: string): void {
    const isKnown = this.#counts.has(given) || this.#counts.size < REASONS_MAX - 1
    const reason = isKnown ? given : OTHER_REASONS
    const nowMs = this.#monotonicMs()
    const count = this.#counts.get(reason) ?? { entries: 0, printedAtMs: -Infinity }
    this.#counts.set(reason, count)
    count.entries += entries
    if (nowMs - count.printedAtMs < REPORT_INTERVAL_MS) return
    count.printedAtMs = nowMs
    this.#printCount(reason, count)
  }

  end(): void {
    for (const [reason, count] of this.#counts) this.#printCount(reason, count)
  }

  #printCount(reason: string, count: { entries: number }): void {
    if (count.entries > 0)
      this.print(`${count.entries} log ${count.entries === 1 ? 'entry was' : 'entries were'} ${reason}`)
    count.entries = 0
  }
}

const STDERR = 2

/** Not with console.error: its output passes through the application's thread, which does not print it any more when it ends. */
export function printReport(report: string): void {
  try {
    writeSync(STDERR, `@sluice/pino-transport: ${report}\n`)
  } catch {
    // Closed, or a pipe without a reader.
  }
}
