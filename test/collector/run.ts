import { pause, type Random } from '@sluice/harness'
import { readStored } from '@sluice/harness/audit'
import { isEmpty } from '@sluice/harness/drain'
import { Journal } from '@sluice/harness/journal'
import { killUntil } from '@sluice/harness/kills'
import { settle } from '@sluice/harness/settle'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'
import { queueNames } from '@sluice/queue'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startCollector } from '../sources/collector.ts'
import { sendRecords, writeLines } from './feed.ts'

export interface CollectorRunOptions {
  readonly records: number
  readonly recordsPerSecond: number
  readonly random: Random
  /** Whether requests have `Sluice-Idempotency: body`. */
  readonly isIdempotent: boolean
  /** Whether the Collector is killed too. */
  readonly killsCollector: boolean
  /** Whether it reads files. Otherwise it receives OTLP. */
  readonly readsFiles: boolean
  readonly log: (line: string) => void
}

export interface CollectorReport {
  /** How often each process was killed. */
  readonly kills: Readonly<Record<string, number>>
  readonly seconds: number
  /** Records that are not stored. */
  readonly lost: number
  /** Records that are stored more than once. */
  readonly duplicated: number
  /** The rows of these records, except for one of each. */
  readonly additionalRows: number
  /** Requests to the Collector that were not acknowledged at first. */
  readonly repeated: number
  /** Requests of the Collector that it sent again. */
  readonly retries: number
  /** Requests that it dropped. */
  readonly drops: number
}

/** The Collector waits up to 30 s between two attempts. */
const STORED_DEADLINE_MS = 300_000
const STOP_DEADLINE_MS = 60_000
/** As in the chaos test: the chunks of a killed worker are soon taken over. */
const LOCK_DURATION_MS = 5_000
const POLL_MS = 2_000
const PROGRESS_RECORDS = 100_000

/** Sends records through a Collector while API and worker are killed, and counts what is stored. */
export async function runCollector(options: CollectorRunOptions): Promise<CollectorReport> {
  const installation = await startTestInstallation({
    worker: { environment: { LOCK_DURATION_MS: String(LOCK_DURATION_MS) } },
  })
  try {
    return await runOn(installation, options)
  } finally {
    await installation.stop({ force: true })
  }
}

async function runOn(installation: Installation, options: CollectorRunOptions): Promise<CollectorReport> {
  const { records, recordsPerSecond, isIdempotent, killsCollector, readsFiles, log } = options
  const { apiUrl, apiKey, redisUrl, prefix, clickhouse, processes, supervisor } = installation
  const logFolder = join(supervisor.dataDir, 'shop')
  mkdirSync(logFolder)
  const collector = await startCollector(supervisor, {
    example: readsFiles ? 'otel-collector/files.yaml' : 'otel-collector/config.yaml',
    replacements: {
      'https://logs.example.com': apiUrl,
      ...(readsFiles ? { '/var/log/shop': logFolder } : {}),
      ...(isIdempotent ? {} : { '      Sluice-Idempotency: body\n': '' }),
    },
    environment: { SLUICE_API_KEY: apiKey },
  })
  const journal = new Journal('collector')
  const startedAtMs = performance.now()
  const stopping = new AbortController()
  const victims = [processes.api, processes.worker, ...(killsCollector ? [collector.process] : [])]
  const killing = killUntil(stopping.signal, victims, options.random)
  const progress = (done: number): void => {
    if (done % PROGRESS_RECORDS === 0) log(`${done} records are ${readsFiles ? 'written' : 'acknowledged'}`)
  }
  const feed = { journal, records, recordsPerSecond, progress }
  const repeated = readsFiles
    ? await writeLines({ ...feed, file: join(logFolder, 'app.log') }).then(() => 0)
    : await sendRecords({ ...feed, url: collector.url })
  stopping.abort()
  const kills = await killing
  const giveUpAtMs = performance.now() + STORED_DEADLINE_MS
  for (let stored = 0; stored < records && performance.now() < giveUpAtMs; await pause(POLL_MS)) {
    stored = (await readStored(clickhouse, journal.label)).size
    log(`${stored} records are stored`)
  }
  const seconds = Math.round((performance.now() - startedAtMs) / 1_000)
  // The Collector ends only after its last response. What it sends twice is stored by then.
  await collector.process.stop({ deadlineMs: STOP_DEADLINE_MS })
  const stores = { redisUrl, shards: [queueNames(prefix)], clickhouse }
  const { queues, findings } = await settle(stores, journal)
  if (!queues.every(isEmpty)) throw new Error(`the queue has jobs left: ${JSON.stringify(queues)}`)
  const lines = readFileSync(collector.process.logFile, 'utf8').split('\n')
  const logged = (message: string): number => lines.filter((line) => line.includes(message)).length
  return {
    kills,
    seconds,
    lost: findings.lost.length,
    duplicated: findings.doubled.length,
    additionalRows: findings.doubled.reduce((sum, { rows, deadLetters }) => sum + rows + deadLetters - 1, 0),
    repeated,
    retries: logged('Will retry the request after interval'),
    drops: logged('Dropping data'),
  }
}
