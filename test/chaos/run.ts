import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Cluster } from './cluster.ts'
import { Injector } from './injector.ts'
import { Journal } from './journal.ts'
import { Load } from './load.ts'
import { pause } from './pause.ts'
import { scanLogs } from './process-logs.ts'
import { seededRandom } from './random.ts'
import { buildReport, type Report } from './report.ts'
import { describeFault, planFaults, type Fault } from './schedule.ts'
import { appsOf, settle } from './settle.ts'
import { buildTopology } from './topology.ts'

export interface RunOptions {
  readonly seed: number
  readonly minutes: number
  readonly entriesPerSecond: number
  /** Told what goes on, a line at a time. */
  readonly log: (line: string) => void
}

/** A run's settings that nobody has needed to change. */
export const runSettings = {
  apis: 2,
  workers: 2,
  /** Two cores keep up with it while things restart; what counts here is the faults, not the entries. */
  entriesPerSecond: 300,
  /** A dead worker's chunks are taken over soon, so that many takeovers fit into a run. */
  lockDurationMs: 5_000,
  /** The last takeover waits for a lock and two checks of the queue; the rest is headroom for a backlog. */
  drainDeadlineMs: 120_000,
} as const

/** The faults of a run. */
export function planRun({ seed, minutes }: Pick<RunOptions, 'seed' | 'minutes'>): Fault[] {
  const topology = buildTopology(runSettings.apis, runSettings.workers)
  return planFaults({ seed, durationMs: minutes * 60_000, topology })
}

/**
 * Sends entries while faults happen, then heals everything, lets the queue drain, and compares what was acknowledged with
 * what is stored.
 *
 * @returns the report; and where the data and the logs are, which are kept if the run did not pass
 */
export async function runChaos(
  options: RunOptions,
): Promise<{ report: Report; keptDataDir: string | undefined }> {
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-chaos-'))
  const cluster = await Cluster.start({
    dataDir,
    apis: runSettings.apis,
    workers: runSettings.workers,
    workerEnvironment: { LOCK_DURATION_MS: String(runSettings.lockDurationMs) },
  })
  try {
    const report = await runOn(cluster, options)
    await cluster.stop()
    if (report.passed) await rm(dataDir, { recursive: true, force: true })
    return { report, keptDataDir: report.passed ? undefined : dataDir }
  } catch (error) {
    await cluster.stop()
    throw new Error(`the run broke off; its logs are in ${join(dataDir, 'logs')}`, { cause: error })
  }
}

async function runOn(cluster: Cluster, options: RunOptions): Promise<Report> {
  const { seed, minutes, entriesPerSecond, log } = options
  const journal = new Journal(`chaos-${seed}`)
  const load = new Load({
    journal,
    apiUrls: cluster.apiUrls,
    apiKey: cluster.apiKey,
    // Another generator than the schedule's: how much is drawn from it depends on the machine.
    random: seededRandom(seed + 1),
    entriesPerSecond,
  })
  const injector = new Injector(cluster, (fault) => log(describeFault(fault)))

  const startedAtMs = performance.now()
  load.start()
  let recoveryMs = 0
  try {
    await injector.run(planRun(options))
    await pause(startedAtMs + minutes * 60_000 - performance.now())
    recoveryMs = await timed(async () => {
      await cluster.heal()
      await injector.settle()
    })
  } finally {
    await load.stop()
  }
  log(`everything is up again after ${Math.round(recoveryMs)} ms; draining`)
  const settlement = await settle(cluster, journal, runSettings.drainDeadlineMs)
  const logs = scanLogs(appsOf(cluster).map(({ process }) => process.logFile))
  const { records } = injector
  const { victims } = cluster
  return buildReport({
    seed,
    minutes,
    startedAtMs,
    journal,
    records,
    victims,
    recoveryMs,
    logs,
    ...settlement,
  })
}

async function timed(run: () => Promise<void>): Promise<number> {
  const startedAtMs = performance.now()
  await run()
  return performance.now() - startedAtMs
}
