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
import { RequestGenerator } from './generator.ts'
import { Judge } from './judge.ts'
import { Lane } from './lane.ts'
import { describeFaults, Ledger, type Report, type RowCounts } from './report.ts'

export interface RunOptions {
  readonly seed: number
  /** The numbers of the requests: `first` is included, `end` is not. */
  readonly first: number
  readonly end: number
  /** Receives the progress, line by line. */
  readonly log: (line: string) => void
}

const runSettings = {
  /** Enough to keep the API busy while some lanes wait. More would not make the run faster. */
  lanes: 48,
  /** The share of requests that are sent before the first measurement, with which the last one is compared. */
  warmUpShare: 0.2,
  /** In requests. */
  progressEvery: 100_000,
  /** Stops the run: this many faults suffice, and if the API is down every request is a fault. */
  faultsMax: 200,
} as const

/** Starts an installation, sends requests to it, and checks what they leave behind. */
export async function runFuzz(options: RunOptions): Promise<Report> {
  const ledger = new Ledger()
  const installation = await startFuzzInstallation()
  try {
    return await runOn(installation, ledger, options)
  } catch (error) {
    throw new Error(`the run was aborted\n${describeFaults(options.seed, ledger)}`, { cause: error })
  } finally {
    await installation.stop({ force: true })
  }
}

async function runOn(installation: FuzzInstallation, ledger: Ledger, options: RunOptions): Promise<Report> {
  const { seed, first, end } = options
  const pids = pidsOf(installation)
  const canaries = new Canaries(installation.port, installation.canaryKey)
  const generator = new RequestGenerator(seed, installation.keys)
  const document = await (await fetch(`${installation.apiUrl}/openapi.json`)).json()
  const judge = new Judge(document as ConstructorParameters<typeof Judge>[0])
  const run: Run = { port: installation.port, ledger, judge, canaries, generator, log: options.log }
  const middle = first + Math.ceil((end - first) * runSettings.warmUpShare)

  const startedAtMs = performance.now()
  await send(run, first, middle)
  const warmedUpAtMs = performance.now()
  const before = await readRestState(installation)
  const restedAtMs = performance.now()
  await send(run, middle, end)
  const sendMs = performance.now() - restedAtMs + warmedUpAtMs - startedAtMs

  const { rest, leftovers } = await findLeftovers(installation, before)
  const { rows, findings } = await inspectStored(installation, ledger, canaries)
  return {
    seed,
    ledger,
    canaries: canaries.sent,
    sendMs,
    sizes: { before: before.api, after: rest.api },
    rows,
    findings: [
      ...canaries.faults,
      ...leftovers,
      ...findings,
      ...pidsOf(installation).flatMap((pid, i) => (pid === pids[i] ? [] : [`process ${pids[i]} has exited`])),
      ...logFindings(installation),
    ],
  }
}

interface Run {
  readonly port: number
  readonly ledger: Ledger
  readonly judge: Judge
  readonly canaries: Canaries
  readonly generator: RequestGenerator
  readonly log: (line: string) => void
}

/** Sends requests and canaries, and resolves when all have their responses and their connections are closed. */
async function send(run: Run, from: number, to: number): Promise<void> {
  const { port, ledger, judge, canaries, generator, log } = run
  let number = from
  const next = (): FuzzRequest | undefined => {
    if (number >= to || ledger.faultCount >= runSettings.faultsMax) return undefined
    if (number > from && number % runSettings.progressEvery === 0) log(`${number} requests`)
    number += 1
    return generator.make(number - 1)
  }
  canaries.start()
  await Promise.all(
    Array.from({ length: runSettings.lanes }, () => new Lane({ port, ledger, judge, next }).run()),
  )
  await canaries.stop()
}

function pidsOf({ processes }: FuzzInstallation): (number | undefined)[] {
  return Object.values(processes).map(({ pid }) => pid)
}

/** Compares what ClickHouse has stored with the responses. */
async function inspectStored(
  { clickhouse }: FuzzInstallation,
  ledger: Ledger,
  canaries: Canaries,
): Promise<{ rows: RowCounts; findings: string[] }> {
  const counts = await select<{ name: string; rows: number }>(
    clickhouse,
    `SELECT project_id AS name, toUInt32(count()) AS rows FROM logs GROUP BY name
      UNION ALL SELECT 'dead letters' AS name, toUInt32(count()) AS rows FROM dead_letters`,
  )
  const rows = Object.fromEntries(counts.map(({ name, rows: count }) => [name, count]))
  return { rows, findings: [...(await canaries.compare(clickhouse)), ...rowFindings(ledger, rows)] }
}

function rowFindings({ exactRows, tornRows }: Ledger, rows: RowCounts): string[] {
  const findings: string[] = []
  const exact = rows[exactProject] ?? 0
  const torn = rows[tornProject] ?? 0
  if (exact !== exactRows) findings.push(`${exactRows} rows were accepted, but ${exact} are stored`)
  if (torn < tornRows) {
    findings.push(`${tornRows} rows of torn requests were accepted, but only ${torn} are stored`)
  }
  if (rows['dead letters'] !== 0) findings.push(`ClickHouse has rejected ${rows['dead letters']} rows`)
  return findings
}

function logFindings({ processes: { api, worker } }: FuzzInstallation): string[] {
  const { fatal, errors, strange } = scanLogs([api.logFile, worker.logFile])
  const counted = Object.entries({ ...errors, ...strange }).map(
    ([line, count]) => `${count} × in a log: ${line}`,
  )
  return [...fatal, ...counted]
}
