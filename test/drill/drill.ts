import type { ClickHouseAccess } from '@sluice/clickhouse'
import { pause, seededRandom } from '@sluice/harness'
import { audit, isClean } from '@sluice/harness/audit'
import { awaitInserts, drainQueue, isEmpty } from '@sluice/harness/drain'
import { Journal } from '@sluice/harness/journal'
import { Load } from '@sluice/harness/load'
import { tally } from '@sluice/harness/process-logs'
import { shardNames } from '@sluice/queue'

/** A running installation. */
export interface DrillTarget {
  /** Addresses of API processes on this machine. */
  readonly apiUrls: readonly string[]
  readonly apiKey: string
  readonly redisUrl: string
  readonly prefix: string
  /** Shards that were in use since the drill began. */
  readonly shards: number
  readonly clickhouse: ClickHouseAccess
}

export interface DrillOptions {
  readonly label: string
  readonly entriesPerSecond: number
  readonly seconds: number
  /** How long the queue may take to become empty after the last entry was sent. */
  readonly drainSeconds: number
  /** Receives the report, line by line. */
  readonly log: (line: string) => void
}

const REPORT_INTERVAL_S = 10
/** An insert whose sender was killed ends when ClickHouse's timeout for a silent connection has passed. */
const INSERTS_DEADLINE_MS = 60_000
const NUMBERS_SHOWN_MAX = 10

/**
 * Sends entries at a constant rate while an operator does something to the installation. Then waits until the queue is empty, and compares
 * what was acknowledged with what is stored.
 *
 * @returns whether nothing is left in the queue, lost or duplicated
 */
export async function runDrill(target: DrillTarget, options: DrillOptions): Promise<boolean> {
  const { label, entriesPerSecond, seconds, log } = options
  const journal = new Journal(label)
  const { apiUrls, apiKey } = target
  const load = new Load({ journal, apiUrls, apiKey, random: seededRandom(Date.now()), entriesPerSecond })
  load.start()
  for (let passedS = 0; passedS < seconds; passedS += REPORT_INTERVAL_S) {
    const before = new Map(journal.answers)
    const sentBefore = journal.size
    await pause(Math.min(REPORT_INTERVAL_S, seconds - passedS) * 1000)
    log(
      `${clockText()} ${journal.size - sentBefore} entries sent; answers: ${changes(before, journal.answers)}`,
    )
  }
  await load.stop()
  log(
    `${clockText()} ${journal.size} entries sent: ${journal.count('acknowledged')} acknowledged, ${journal.count('rejected')} rejected (4xx), ` +
      `${journal.count('refused')} answered with 5xx, ${journal.count('unknown')} without an answer`,
  )
  return settle(target, journal, options)
}

async function settle(
  target: DrillTarget,
  journal: Journal,
  { drainSeconds, log }: DrillOptions,
): Promise<boolean> {
  const startedAtMs = performance.now()
  const queues = await Promise.all(
    shardNames(target.prefix, target.shards).map((names) =>
      drainQueue(target.redisUrl, names, drainSeconds * 1000),
    ),
  )
  const drained = queues.every(isEmpty)
  log(
    `${clockText()} the queue ${drained ? 'is empty' : 'is not empty'} after ${((performance.now() - startedAtMs) / 1000).toFixed(1)} s`,
  )
  await awaitInserts(target.clickhouse, INSERTS_DEADLINE_MS)
  const { findings, stored } = await audit(target.clickhouse, journal)
  log(
    `${clockText()} stored: ${stored.rows} rows and ${stored.deadLetters} dead letters, of these ${stored.refusedButStored} answered with 5xx ` +
      `and ${stored.unknownButStored} without an answer`,
  )
  const { lost, doubled, storedThoughRejected, foreign } = findings
  log(
    `${clockText()} audit: ${lost.length} lost, ${doubled.length} duplicated, ${storedThoughRejected.length} stored though rejected, ` +
      `${foreign.length} never sent`,
  )
  for (const [what, found] of [
    ['lost', lost],
    ['duplicated', doubled],
  ] as const) {
    const numbers = found.slice(0, NUMBERS_SHOWN_MAX).map(({ number }) => journal.message(number))
    if (numbers.length > 0) log(`${what}: ${numbers.join(', ')}${found.length > numbers.length ? ', …' : ''}`)
  }
  return drained && isClean(findings)
}

/** How often each answer was given since then, the most frequent first. */
function changes(before: ReadonlyMap<string, number>, now: ReadonlyMap<string, number>): string {
  const counts = tally(
    [...now].flatMap(([answer, count]) => Array<string>(count - (before.get(answer) ?? 0)).fill(answer)),
  )
  return Object.entries(counts)
    .map(([answer, count]) => `${answer} × ${count}`)
    .join(', ')
}

function clockText(): string {
  return new Date().toISOString().slice(11, 19)
}
