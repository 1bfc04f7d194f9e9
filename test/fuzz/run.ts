import { select } from '@sluice/harness/clickhouse'
import { scanLogs } from '@sluice/harness/process-logs'
import { findLeftovers, readRestState } from './aftermath.ts'
import { Canaries } from './canaries.ts'
import {
  exactProject,
  type FuzzInstallation,
  startFuzzInstallation,
  tornProject,
} from './fuzz-installation.ts'
import type { FuzzRequest } from './fuzz-request.ts'
import { requestMaker } from './generator.ts'
import { judgeOf } from './judge.ts'
import { runLane } from './lane.ts'
import { Ledger, type Report, type RowCounts } from './report.ts'

export interface RunOptions {
  readonly seed: number
  /** The numbers of the requests: `first` is included, `end` is not. */
  readonly first: number
  readonly end: number
  readonly log: (line: string) => void
}

const runSettings = {
  /** Enough to keep the API busy while some lanes wait. More would not make the run faster. */
  lanes: 48,
  /** The share of requests that are sent before the first measurement, with which the last one is compared. */
  warmUpShare: 0.2,
  progressEvery: 100_000,
  /** Stops the run: this many faults suffice, and if the API is down every request is a fault. */
  faultsMax: 200,
} as const

/** Starts an installation, sends requests to it, and checks what they leave behind. */
export async function runFuzz(options: RunOptions): Promise<Report> {
  const ledger = new Ledger(options.seed)
  const installation = await startFuzzInstallation()
  try {
    return await runOn(installation, ledger, options)
  } catch (error) {
    throw new Error(`the run was aborted\n${ledger.faults.join('\n')}`, { cause: error })
  } finally {
    await installation.stop({ force: true })
  }
}

async function runOn(installation: FuzzInstallation, ledger: Ledger, options: RunOptions): Promise<Report> {
  const { seed, first, end, log } = options
  const pids = pidsOf(installation)
  const canaries = new Canaries(installation.port, installation.canaryKey)
  const make = requestMaker(seed, installation.keys)
  const document = await (await fetch(`${installation.apiUrl}/openapi.json`)).json()
  const judge = judgeOf(document as Parameters<typeof judgeOf>[0])
  let number = first
  let sendMs = 0
  /** Sends requests and canaries, and resolves when all have their responses and their connections are closed. */
  const sendUntil = async (to: number): Promise<void> => {
    const startedAtMs = performance.now()
    const next = (): FuzzRequest | undefined => {
      if (number >= to || ledger.faultCount >= runSettings.faultsMax) return undefined
      number += 1
      if (number % runSettings.progressEvery === 0) log(`${number} requests`)
      return make(number - 1)
    }
    canaries.start()
    const lanes = Array.from({ length: runSettings.lanes }, () =>
      runLane(installation.port, ledger, judge, next),
    )
    await Promise.all(lanes)
    await canaries.stop()
    sendMs += performance.now() - startedAtMs
  }

  await sendUntil(first + Math.ceil((end - first) * runSettings.warmUpShare))
  const before = await readRestState(installation)
  await sendUntil(end)
  const { rest, leftovers } = await findLeftovers(installation, before)
  const rows = await countRows(installation)
  const findings = [
    ...canaries.faults,
    ...leftovers,
    ...(await canaries.compare(installation.clickhouse)),
    ...rowFindings(ledger, rows),
    ...pidsOf(installation).flatMap((pid, i) => (pid === pids[i] ? [] : [`process ${pids[i]} has exited`])),
    ...logFindings(installation),
  ]
  const sizes = { before: before.api, after: rest.api }
  return { seed, ledger, canaries: canaries.sent, sendMs, sizes, rows, findings }
}

function pidsOf({ processes }: FuzzInstallation): (number | undefined)[] {
  return Object.values(processes).map(({ pid }) => pid)
}

async function countRows({ clickhouse }: FuzzInstallation): Promise<RowCounts> {
  const counts = await select<{ name: string; rows: number }>(
    clickhouse,
    `SELECT project_id AS name, toUInt32(count()) AS rows FROM logs GROUP BY name
      UNION ALL SELECT 'dead letters' AS name, toUInt32(count()) AS rows FROM dead_letters`,
  )
  return Object.fromEntries(counts.map(({ name, rows }) => [name, rows]))
}

/** Compares what ClickHouse has stored with the responses. */
function rowFindings({ exactRows, tornRows }: Ledger, rows: RowCounts): string[] {
  const { [exactProject]: exact = 0, [tornProject]: torn = 0, 'dead letters': deadLetters = -1 } = rows
  const findings: string[] = []
  if (exact !== exactRows) findings.push(`${exactRows} rows were accepted, but ${exact} are stored`)
  if (torn < tornRows)
    findings.push(`${tornRows} rows of torn requests were accepted, but only ${torn} are stored`)
  if (deadLetters !== 0) findings.push(`ClickHouse has rejected ${deadLetters} rows`)
  return findings
}

function logFindings({ processes: { api, worker } }: FuzzInstallation): string[] {
  const { fatal, errors, strange } = scanLogs([api.logFile, worker.logFile])
  const counted = Object.entries({ ...errors, ...strange })
  return [...fatal, ...counted.map(([line, count]) => `${count} × in a log: ${line}`)]
}
