import { connectClickHouse } from '@sluice/clickhouse'
import { pause, type Random } from '@sluice/harness'
import { readStored } from '@sluice/harness/audit'
import { awaitInserts, drainQueue, isEmpty } from '@sluice/harness/drain'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'
import { queueNames } from '@sluice/queue'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startCollector } from '../sources/collector.ts'
import { generate } from './generator.ts'
import { writeFiles } from './files.ts'
import { Killer } from './killer.ts'

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
  readonly records: number
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

const RECORDS_PER_REQUEST = 500
const CONNECTIONS = 4
/** The Collector waits up to 30 s between two attempts. */
const STORED_DEADLINE_MS = 300_000
const SETTLE_DEADLINE_MS = 60_000
/** As in the chaos test: the chunks of a killed worker are soon taken over. */
const LOCK_DURATION_MS = 5_000
const POLL_MS = 2_000
const PROGRESS_RECORDS = 100_000
const LABEL = 'collector'
/** What the Collector logs. */
const RETRY_LINE = 'Will retry the request after interval'
const DROP_LINE = 'Dropping data'

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
  const logFolder = join(installation.supervisor.dataDir, 'shop')
  mkdirSync(logFolder)
  const collector = await startCollector(installation.supervisor, {
    example: readsFiles ? 'otel-collector/files.yaml' : 'otel-collector/config.yaml',
    replacements: {
      'https://logs.example.com': installation.apiUrl,
      ...(readsFiles ? { '/var/log/shop': logFolder } : {}),
      ...(isIdempotent ? {} : { '      Sluice-Idempotency: body\n': '' }),
    },
    environment: { SLUICE_API_KEY: installation.apiKey },
  })
  const { api, worker } = installation.processes
  const killer = new Killer([api, worker, ...(killsCollector ? [collector.process] : [])], options.random)
  const startedAtMs = performance.now()
  let nextReport = PROGRESS_RECORDS
  killer.start()
  const progress = (done: number): void => {
    if (done < nextReport) return
    nextReport += PROGRESS_RECORDS
    log(`${done} records are ${readsFiles ? 'written' : 'acknowledged'}; ${killer.count} kills`)
  }
  const sending = {
    label: LABEL,
    records,
    recordsPerRequest: RECORDS_PER_REQUEST,
    recordsPerSecond,
    progress,
  }
  const repeated = readsFiles
    ? await writeFiles({ ...sending, file: join(logFolder, 'app.log') })
    : await generate({ ...sending, url: collector.url, connections: CONNECTIONS })
  await killer.stop()
  await awaitStored(installation, records, (stored) => log(`${stored} records are stored`))
  const seconds = Math.round((performance.now() - startedAtMs) / 1_000)
  // The Collector ends only after its last answer. What it sends twice is stored by then.
  await collector.process.stop({ deadlineMs: SETTLE_DEADLINE_MS })
  await settle(installation)
  return {
    records,
    kills: killer.kills,
    seconds,
    ...compare(await readStored(installation.clickhouse, LABEL), records),
    repeated,
    ...readCollectorLog(collector.process.logFile),
  }
}

/** Waits until this many different records are stored, or until the deadline. */
async function awaitStored(
  { clickhouse }: Installation,
  records: number,
  progress: (stored: number) => void,
): Promise<void> {
  const client = connectClickHouse(clickhouse, { requestTimeoutMs: SETTLE_DEADLINE_MS, connectionsMax: 1 })
  try {
    const giveUpAtMs = performance.now() + STORED_DEADLINE_MS
    for (;;) {
      const result = await client.query({
        query: 'SELECT toUInt32(uniqExact(message)) AS stored FROM logs',
        format: 'JSONEachRow',
      })
      const [{ stored } = { stored: 0 }] = await result.json<{ stored: number }>()
      if (stored >= records || performance.now() > giveUpAtMs) return
      progress(stored)
      await pause(POLL_MS)
    }
  } finally {
    await client.close()
  }
}

async function settle({ redisUrl, prefix, clickhouse }: Installation): Promise<void> {
  const queue = await drainQueue(redisUrl, queueNames(prefix), SETTLE_DEADLINE_MS)
  if (!isEmpty(queue)) throw new Error(`the queue has jobs left: ${JSON.stringify(queue)}`)
  await awaitInserts(clickhouse)
}

function compare(
  stored: Awaited<ReturnType<typeof readStored>>,
  records: number,
): Pick<CollectorReport, 'lost' | 'duplicated' | 'additionalRows'> {
  let [lost, duplicated, additionalRows] = [0, 0, 0]
  for (let number = 0; number < records; number += 1) {
    const { rows, deadLetters } = stored.get(number) ?? { rows: 0, deadLetters: 0 }
    const copies = rows + deadLetters
    if (copies === 0) lost += 1
    if (copies > 1) duplicated += 1
    additionalRows += Math.max(0, copies - 1)
  }
  return { lost, duplicated, additionalRows }
}

function readCollectorLog(file: string): Pick<CollectorReport, 'retries' | 'drops'> {
  const lines = readFileSync(file, 'utf8').split('\n')
  const count = (text: string): number => lines.filter((line) => line.includes(text)).length
  return { retries: count(RETRY_LINE), drops: count(DROP_LINE) }
}
