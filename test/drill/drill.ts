import type { ClickHouseAccess } from '@sluice/clickhouse'
import { pause, seededRandom } from '@sluice/harness'
import { Journal } from '@sluice/harness/journal'
import { Load } from '@sluice/harness/load'
import { tally } from '@sluice/harness/process-logs'
import { describeSettlement, isExactlyOnce, settle } from '@sluice/harness/settle'
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
  log(`${clockText()} waiting until the queue is empty`)
  const { redisUrl, prefix, shards, clickhouse } = target
  const stores = { redisUrl, shards: shardNames(prefix, shards), clickhouse }
  const settlement = await settle(stores, journal, { drainDeadlineMs: options.drainSeconds * 1000 })
  log(describeSettlement(journal, settlement))
  return isExactlyOnce(settlement)
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
