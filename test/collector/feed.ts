import { pause } from '@sluice/harness'
import type { Journal } from '@sluice/harness/journal'
import { jsonLogs } from '@sluice/harness/otlp-logs'
import { appendFile, rename } from 'node:fs/promises'

export interface FeedOptions {
  readonly journal: Journal
  readonly records: number
  /** On average. */
  readonly recordsPerSecond: number
  /** Called with the number of records that the Collector has acknowledged, or that are written. */
  readonly progress: (records: number) => void
}

const RECORDS_PER_REQUEST = 500
const CONNECTIONS = 4
const RETRY_PAUSE_MS = 200
const RESPONSE_DEADLINE_MS = 60_000
const NS_PER_MS = 1_000_000n
/** A file is renamed after this many lines, to the name of the one before, which is then gone: its lines must have been read. */
const LINES_PER_FILE = 100_000

/** Sends numbered records to a Collector, and sends each request until it is acknowledged. @returns how often one was repeated */
export async function sendRecords(options: FeedOptions & { readonly url: string }): Promise<number> {
  const { journal, url } = options
  let repeated = 0
  await feed(options, CONNECTIONS, async (numbers) => {
    const timeUnixNano = BigInt(Date.now()) * NS_PER_MS
    const logRecords = numbers.map((number, index) => ({
      timeUnixNano,
      severityNumber: 9,
      severityText: 'INFO',
      body: journal.message(number),
      attributes: {
        'http.request.method': 'GET',
        'url.path': `/orders/${number}`,
        'user.id': `user-${index}`,
      },
    }))
    const resource = { attributes: { 'service.name': journal.label, 'host.name': 'web-1' } }
    const body = jsonLogs([{ resource, scopeLogs: [{ scope: { name: 'generator' }, logRecords }] }])
    for (; !(await post(url, body)); repeated += 1) await pause(RETRY_PAUSE_MS)
  })
  return repeated
}

/** Writes numbered lines to a file, and renames it from time to time. */
export async function writeLines(options: FeedOptions & { readonly file: string }): Promise<void> {
  const { journal, file } = options
  await feed(options, 1, async (numbers) => {
    const [first = 0] = numbers
    if (first > 0 && first % LINES_PER_FILE === 0) await rename(file, `${file}.1`)
    const lines = numbers.map((number) => `${new Date().toISOString()} INFO ${journal.message(number)}\n`)
    await appendFile(file, lines.join(''))
  })
}

/** Passes the numbers of all records to `write`, a request's at a time, at the rate, in this many calls at once. */
async function feed(
  { journal, records, recordsPerSecond, progress }: FeedOptions,
  lanes: number,
  write: (numbers: readonly number[]) => Promise<void>,
): Promise<void> {
  const startedAtMs = performance.now()
  let done = 0
  const run = async (): Promise<void> => {
    while (journal.size < records) {
      const dueAtMs = startedAtMs + (journal.size / recordsPerSecond) * 1_000
      const numbers = journal.open(Math.min(RECORDS_PER_REQUEST, records - journal.size))
      await pause(dueAtMs - performance.now())
      await write(numbers)
      journal.settle(numbers, 'acknowledged')
      progress((done += numbers.length))
    }
  }
  await Promise.all(Array.from({ length: lanes }, run))
}

async function post(url: string, body: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/v1/logs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      signal: AbortSignal.timeout(RESPONSE_DEADLINE_MS),
    })
    await response.arrayBuffer()
    return response.ok
  } catch {
    return false
  }
}
