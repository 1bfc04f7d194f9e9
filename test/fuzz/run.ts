import type { Stack } from '@sluice/local'
import { connectClickHouse, type ClickHouseClient } from '@sluice/runtime'
import { scanLogs } from '../chaos/process-logs.ts'
import { findLeftovers, lookAtRest } from './aftermath.ts'
import type { FuzzRequest } from './fuzz-request.ts'
import { makeRequest } from './generator.ts'
import { Lane } from './lane.ts'
import { Ledger } from './ledger.ts'
import { describeFaults, type Report, type RowCounts } from './report.ts'
import { Sentinels } from './sentinels.ts'
import { StandstillWatch } from './standstill.ts'
import { exactProject, startTarget, tornProject, type Target } from './target.ts'

export interface RunOptions {
  readonly seed: number
  /** The numbers of the requests: from the first to before the end. */
  readonly first: number
  readonly end: number
  /** Told what goes on, a line at a time. */
  readonly log: (line: string) => void
}

export const runSettings = {
  /** Enough to keep the API busy while some of them wait; more do not make it faster. */
  lanes: 48,
  /** What is measured at the end is compared with how it was after this part of the requests. */
  warmUpShare: 0.2,
  /** How often progress is told, in requests. */
  progressEvery: 100_000,
  /** So many tell enough, and an API that is gone would make a fault of each request. */
  faultsMax: 200,
  /** Counting a million rows takes a second on a machine that is busy. */
  queryMs: 60_000,
} as const

/** Sends requests to a system of its own, and looks at what became of it. */
export async function runFuzz(options: RunOptions): Promise<Report> {
  const ledger = new Ledger()
  const target = await startTarget()
  const watch = new StandstillWatch()
  try {
    return { ...(await runOn(target, ledger, options)), standstillsMs: watch.standstillsMs }
  } catch (error) {
    throw new Error(`the run broke off\n${describeFaults(options.seed, ledger)}`, { cause: error })
  } finally {
    watch.stop()
    await target.stack.stop({ force: true })
  }
}

async function runOn(
  target: Target,
  ledger: Ledger,
  options: RunOptions,
): Promise<Omit<Report, 'standstillsMs'>> {
  const { seed, first, end } = options
  const pids = pidsOf(target)
  const sentinels = new Sentinels(target.port, target.sentinelKey)
  const middle = first + Math.ceil((end - first) * runSettings.warmUpShare)

  const startedAtMs = performance.now()
  await send({ target, ledger, sentinels, options }, first, middle)
  const warmedUpAtMs = performance.now()
  const before = await lookAtRest(target.stack)
  const restedAtMs = performance.now()
  await send({ target, ledger, sentinels, options }, middle, end)
  const sendMs = performance.now() - restedAtMs + warmedUpAtMs - startedAtMs

  const { rest, leftovers } = await findLeftovers(target.stack, before)
  const { rows, findings } = await inspectStored(target.stack, ledger, sentinels)
  return {
    seed,
    ledger,
    sentinels: sentinels.sent,
    sendMs,
    sizes: { before: before.api, after: rest.api },
    rows,
    findings: [
      ...sentinels.faults,
      ...leftovers,
      ...findings,
      ...pidsOf(target).flatMap((pid, i) => (pid === pids[i] ? [] : [`a process ended: ${pids[i]}`])),
      ...logFindings(target.stack),
    ],
  }
}

interface Run {
  readonly target: Target
  readonly ledger: Ledger
  readonly sentinels: Sentinels
  readonly options: RunOptions
}

/** Sends requests beside the sentinels, and resolves when all are answered and their connections closed. */
async function send({ target, ledger, sentinels, options }: Run, from: number, to: number): Promise<void> {
  const { port, keys } = target
  const next = numbered(from, to, (number) => {
    if (ledger.faultCount >= runSettings.faultsMax) return undefined
    if (number > from && number % runSettings.progressEvery === 0) options.log(`${number} requests`)
    return makeRequest(options.seed, number, keys)
  })
  sentinels.start()
  await Promise.all(Array.from({ length: runSettings.lanes }, () => new Lane({ port, ledger, next }).run()))
  await sentinels.stop()
}

/** Gives what is made of each number in turn, then nothing. */
function numbered(
  from: number,
  to: number,
  make: (number: number) => FuzzRequest | undefined,
): () => FuzzRequest | undefined {
  let number = from
  return () => {
    if (number >= to) return undefined
    number += 1
    return make(number - 1)
  }
}

function pidsOf({ stack }: Target): (number | undefined)[] {
  return Object.values(stack.processes).map(({ pid }) => pid)
}

/** Compares what is in ClickHouse with what was answered. */
async function inspectStored(
  { clickhouse }: Stack,
  ledger: Ledger,
  sentinels: Sentinels,
): Promise<{ rows: RowCounts; findings: string[] }> {
  const tuning = { requestTimeoutMs: runSettings.queryMs, connectionsMax: 1 }
  const client = connectClickHouse(clickhouse, tuning)
  try {
    const rows = await countRows(client)
    return { rows, findings: [...(await sentinels.compare(client)), ...rowFindings(ledger, rows)] }
  } finally {
    await client.close()
  }
}

async function countRows(client: ClickHouseClient): Promise<RowCounts> {
  const result = await client.query({
    query: `
      SELECT project_id AS name, toUInt32(count()) AS rows FROM logs GROUP BY name
      UNION ALL SELECT 'dead letters' AS name, toUInt32(count()) AS rows FROM dead_letters`,
    format: 'JSONEachRow',
  })
  const counts = await result.json<{ name: string; rows: number }>()
  return Object.fromEntries(counts.map(({ name, rows }) => [name, rows]))
}

function rowFindings({ exactRows, tornRows }: Ledger, rows: RowCounts): string[] {
  const findings: string[] = []
  const exact = rows[exactProject] ?? 0
  const torn = rows[tornProject] ?? 0
  if (exact !== exactRows) findings.push(`${exactRows} rows were accepted, and ${exact} are stored`)
  if (torn < tornRows)
    findings.push(`${tornRows} rows of torn requests were accepted, and only ${torn} are stored`)
  if (rows['dead letters'] !== 0) findings.push(`ClickHouse has refused ${rows['dead letters']} rows`)
  return findings
}

function logFindings({ processes: { api, worker } }: Stack): string[] {
  const { fatal, errors, strange } = scanLogs([api.logFile, worker.logFile])
  const counted = Object.entries({ ...errors, ...strange }).map(
    ([line, count]) => `${count} × in a log: ${line}`,
  )
  return [...fatal, ...counted]
}
