// `npm run lab -- bench`: measures the throughput and latency of Sluice on this machine, and compares it with a baseline.
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CommandLine } from '@sluice/harness/command-line'
import { Supervisor } from '@sluice/local'
import { LoadProcess } from './load/load-process.ts'
import { type Scenario, scenarios } from './load/scenarios.ts'
import { redisInfo } from './measure/redis-info.ts'
import { Store } from './measure/store.ts'
import { readNames } from './options.ts'
import { measureScenario } from './phases/measure-scenario.ts'
import { describeMachine, formatReport, type ScenarioReport, type SystemReport } from './report.ts'
import {
  defaultSystems,
  onlyFormats,
  type Profile,
  startSystem,
  type System,
  type SystemName,
  systemNames,
} from './systems.ts'

const commandLine = new CommandLine(`npm run lab -- bench [options]

  --scenario NAMES      ${scenarios.map(({ name }) => name).join(',')}; default all
  --system NAMES        ${systemNames.join(',')}; default ${defaultSystems.join(',')}
  --seconds N           length of each measurement window; default 15, with --quick 4
  --quick               measures fewer rates
  --rate N              measures every system at N entries per second, and searches no highest sustained rate
  --profile api|worker  saturates each system once and writes CPU profiles of its API or worker
  --json                prints JSON instead of tables (npm run --silent lab -- bench --json > FILE)
  --help                prints this text
`)
const values = commandLine.read({
  scenario: { type: 'string', multiple: true },
  system: { type: 'string', multiple: true },
  seconds: { type: 'string' },
  rate: { type: 'string' },
  profile: { type: 'string' },
  quick: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
})
if (process.platform !== 'linux') commandLine.fail('The benchmark requires Linux, because it reads /proc.')
const scenarioNames = scenarios.map(({ name }) => name)
const chosenNames = readNames(commandLine, '--scenario', values.scenario, scenarioNames)
const chosenScenarios = scenarios.filter(({ name }) => chosenNames.includes(name))
const chosenSystems = readNames(commandLine, '--system', values.system, systemNames, defaultSystems)
const windowMs = commandLine.positive('seconds', values.seconds ?? (values.quick ? '4' : '15')) * 1_000
/** Entries per second at which latencies are measured. Undefined: half of each system's highest sustained rate. */
const ratePerS = values.rate === undefined ? undefined : commandLine.positive('rate', values.rate)
const profile =
  values.profile === undefined
    ? undefined
    : { role: readRole(values.profile), folder: join(tmpdir(), `sluice-bench-profiles-${process.pid}`) }

/** The seed of the entries. Every system in every run gets the same entries. */
const SEED = 42
/** How many rates the search for the highest sustained rate measures. */
const trialsMax = values.quick ? 2 : 4
const log = (text: string): void => console.error(`  ${text}`)
const versions = { redis: '–', clickhouse: '–' }
const interrupted = new AbortController()
let running: Supervisor | undefined
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    interrupted.abort(new Error('interrupted'))
    running?.stop({ force: true }).catch(() => undefined)
  })
}
try {
  await run()
} catch (error) {
  console.error(interrupted.signal.aborted ? 'interrupted' : error)
  process.exitCode = 1
}
process.exit()

function readRole(given: string): Profile['role'] {
  if (given === 'api' || given === 'worker') return given
  return commandLine.fail('--profile must be api or worker')
}

/** Measures each scenario with each system. Each is freshly started, and has stopped before the next one starts. */
async function run(): Promise<void> {
  if (profile !== undefined) await mkdir(profile.folder, { recursive: true })
  const reports: ScenarioReport[] = []
  for (const scenario of chosenScenarios) {
    const systems: SystemReport[] = []
    for (const name of chosenSystems) {
      if ((onlyFormats[name] ?? scenario.format) !== scenario.format) continue
      // Standard output is reserved for the report.
      console.error(`${scenario.name}, ${name}`)
      const report = await measure(scenario, name).catch(reportError)
      if (report !== undefined) systems.push(report)
    }
    reports.push({ scenario, systems })
  }
  if (profile !== undefined) console.error(`profiles are in ${profile.folder}`)
  const report = {
    at: new Date().toISOString(),
    machine: describeMachine(),
    ...versions,
    windowS: windowMs / 1_000,
    scenarios: reports,
  }
  console.log(values.json ? JSON.stringify(report, undefined, 2) : formatReport(report))
}

/** A system that cannot be measured must not prevent the measurement of the others. */
function reportError(error: unknown): undefined {
  interrupted.signal.throwIfAborted()
  console.error(`  not measured: ${error instanceof Error ? error.message : String(error)}`)
}

async function measure(scenario: Scenario, name: SystemName): Promise<SystemReport> {
  interrupted.signal.throwIfAborted()
  const supervisor = new Supervisor()
  running = supervisor
  const load = new LoadProcess()
  try {
    return await measureSystem(scenario, await startSystem(name, { supervisor, profile }), load)
  } finally {
    await load.stop()
    await supervisor.stop()
  }
}

async function measureSystem(scenario: Scenario, system: System, load: LoadProcess): Promise<SystemReport> {
  const store = new Store(system.clickhouse)
  try {
    const [row] = await store.select<{ version: string }>('SELECT version() AS version')
    versions.clickhouse = row?.version ?? '–'
    const { url, apiKey, redisUrl } = system
    if (redisUrl !== undefined)
      versions.redis = (await redisInfo(redisUrl, 'server')).get('redis_version') ?? '–'
    const { requests, format } = scenario
    const { bytesPerEntry } = await load.prepare({ url, apiKey, requests, format, seed: SEED })
    const { signal } = interrupted
    const context = { system, scenario, store, load, windowMs, trialsMax, ratePerS, signal, log }
    return { system: system.name, bytesPerEntry, ...(await measureScenario(context, profile !== undefined)) }
  } finally {
    await store.close()
  }
}
