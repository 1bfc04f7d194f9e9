import { pause, seededRandom } from '@sluice/harness'
import { Journal } from '@sluice/harness/journal'
import { Load } from '@sluice/harness/load'
import { scanLogs } from '@sluice/harness/process-logs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ChaosInstallation } from './chaos-installation.ts'
import { injectFaults } from './injector.ts'
import { buildReport, type Report } from './report.ts'
import { buildTopology, describeFault, planFaults, type Fault } from './schedule.ts'

export interface RunOptions {
  readonly seed: number
  readonly minutes: number
  readonly entriesPerSecond: number
  /** Whether the power of Redis and ClickHouse is cut, too. See `PowerDisk` for what it needs. */
  readonly hasPowerCuts: boolean
  readonly deckMs?: number
  readonly log: (line: string) => void
}

/** Settings without a command-line option. */
export const runSettings = {
  apis: 2,
  workers: 2,
  /** Two cores can handle this rate while processes restart. The test is about the faults, not about the rate. */
  entriesPerSecond: 300,
  /** Short, so that a dead worker's chunks are taken over soon and a run has many takeovers. */
  lockDurationMs: 5_000,
  /** A split batch waits for two minutes if an insert of it got no response. The rest is headroom for a backlog. */
  drainDeadlineMs: 300_000,
} as const

export function planRun({
  seed,
  minutes,
  hasPowerCuts,
  deckMs,
}: Omit<RunOptions, 'entriesPerSecond' | 'log'>): Fault[] {
  const topology = buildTopology(runSettings.apis, runSettings.workers)
  return planFaults({ seed, durationMs: minutes * 60_000, topology, hasPowerCuts, deckMs })
}

/**
 * Sends entries while faults happen, then heals everything, drains the queue, and compares what was acknowledged with what is stored.
 *
 * @returns the report, and the folder of data and logs, which is kept if the run failed
 */
export async function runChaos(
  options: RunOptions,
): Promise<{ report: Report; keptDataDir: string | undefined }> {
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-chaos-'))
  const installation = await ChaosInstallation.start({
    dataDir,
    hasPowerCuts: options.hasPowerCuts,
    apis: runSettings.apis,
    workers: runSettings.workers,
    workerEnvironment: { LOCK_DURATION_MS: String(runSettings.lockDurationMs) },
  })
  try {
    const report = await runOn(installation, options)
    await installation.stop()
    if (report.passed) await rm(dataDir, { recursive: true, force: true })
    return { report, keptDataDir: report.passed ? undefined : dataDir }
  } catch (error) {
    await installation.stop()
    throw new Error(`the run was aborted; its logs are in ${join(dataDir, 'logs')}`, { cause: error })
  }
}

async function runOn(installation: ChaosInstallation, options: RunOptions): Promise<Report> {
  const { seed, minutes, entriesPerSecond, log } = options
  const journal = new Journal(`chaos-${seed}`)
  const { apiUrls, apiKey, victims } = installation
  // Not the generator of the schedule: how many numbers the load draws depends on the machine.
  const load = new Load({ journal, apiUrls, apiKey, random: seededRandom(seed + 1), entriesPerSecond })
  const startedAtMs = performance.now()
  const reader = installation.openReader()
  load.start()
  let recoveryMs = 0
  let faults: Awaited<ReturnType<typeof injectFaults>> | undefined
  try {
    faults = await injectFaults(installation, planRun(options), (fault) => log(describeFault(fault)))
    await pause(startedAtMs + minutes * 60_000 - performance.now())
    const healedAtMs = performance.now()
    await installation.heal()
    await faults.ended
    recoveryMs = performance.now() - healedAtMs
  } finally {
    await load.stop()
  }
  log(`all processes are ready after ${Math.round(recoveryMs)} ms; draining the queue`)
  const settlement = await installation.settle(journal, runSettings.drainDeadlineMs)
  const reading = await reader.compare()
  const logs = scanLogs(installation.apps.map(({ process }) => process.logFile))
  const { records } = faults
  return buildReport({
    seed,
    minutes,
    startedAtMs,
    journal,
    records,
    victims,
    recoveryMs,
    logs,
    reading,
    ...settlement,
  })
}
