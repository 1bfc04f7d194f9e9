import { connectClickHouse, type ClickHouseClient } from '@sluice/runtime'
import { scanLogs } from '../chaos/process-logs.ts'
import { findLeftovers, lookAtRest } from './aftermath.ts'
import type { FuzzRequest } from './fuzz-request.ts'
import { makeRequest } from './generator.ts'
import { Lane } from './lane.ts'
import { Ledger } from './ledger.ts'
import type { Report } from './report.ts'
import { Sentinels } from './sentinels.ts'
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
  /** Enough to keep the API busy; each more only waits. */
  lanes: 48,
  /** Of ten requests on a connection, the rest wait for the answer of the first. */
  depthMax: 10,
  /** What is measured at the end is compared with how it was after this part of the requests. */
  warmUpShare: 0.2,
  /** How often progress is told, in requests. */
  progressEvery: 100_000,
  /** Counting a million rows takes a second on a machine that is busy. */
  queryMs: 60_000,
} as const

/** Sends requests to a system of its own, and looks at what became of it. */
export async function runFuzz(options: RunOptions): Promise<Report> {
  const target = await startTarget()
  try {
    return await runOn(target, options)
  } finally {
    await target.stack.stop({ force: true })
  }
}

async function runOn(target: Target, options: RunOptions): Promise<Report> {
  const { seed, first, end, log } = options
  const { stack, port, keys, sentinelKey } = target
  const pids = pidsOf(target)
  const ledger = new Ledger()
  const sentinels = new Sentinels(port, sentinelKey)
  const send = async (from: number, to: number): Promise<number> => {
    const next = numbered(from, to, (number) => {
      if (number > first && number % runSettings.progressEvery === 0) log(`${number} requests`)
      return makeRequest(seed, number, keys)
    })
    const startedAtMs = performance.now()
    sentinels.start()
    await Promise.all(
      Array.from({ length: runSettings.lanes }, (_, i) =>
        new Lane({ port, ledger, depth: 1 + (i % runSettings.depthMax), next }).run(),
      ),
    )
    await sentinels.stop()
    return performance.now() - startedAtMs
  }

  const middle = first + Math.ceil((end - first) * runSettings.warmUpShare)
  const warmUpMs = await send(first, middle)
  const before = await lookAtRest(stack)
  const runMs = await send(middle, end)
  const { rest, leftovers } = await findLeftovers(stack, before)
  const client = connectClickHouse(stack.clickhouse, {
    requestTimeoutMs: runSettings.queryMs,
    connectionsMax: 1,
  })
  try {
    const rows = await countRows(client)
    const logs = scanLogs([stack.processes.api.logFile, stack.processes.worker.logFile])
    return {
      seed,
      ledger,
      sentinels: sentinels.sent,
      sendMs: warmUpMs + runMs,
      sizes: { before: before.api, after: rest.api },
      rows,
      logs,
      findings: [
        ...sentinels.faults,
        ...(await sentinels.compare(client)),
        ...leftovers,
        ...rowFindings(ledger, rows),
        ...pidsOf(target).flatMap((pid, i) => (pid === pids[i] ? [] : [`a process ended: ${pids[i]}`])),
        ...logs.fatal,
        ...Object.entries({ ...logs.errors, ...logs.strange }).map(
          ([line, count]) => `${count} × in a log: ${line}`,
        ),
      ],
    }
  } finally {
    await client.close()
  }
}

/** Gives what is made of each number in turn, then nothing. */
function numbered(
  from: number,
  to: number,
  make: (number: number) => FuzzRequest,
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

/** How many rows each project has, and how many rows ClickHouse has refused. */
export type RowCounts = Readonly<Record<string, number>>

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
