import { CommandLine } from '@sluice/harness/command-line'
import { type Scenario, scenarios } from './load/scenarios.ts'
import { defaultSystems, type Profile, type SystemName, systemNames } from './systems/system.ts'

export interface BenchOptions {
  readonly scenarios: readonly Scenario[]
  readonly systems: readonly SystemName[]
  /** Length of each measurement window. */
  readonly windowMs: number
  /** How many rates the search for the highest sustained rate measures. */
  readonly trialsMax: number
  /** Entries per second at which latencies are measured. Undefined: half of each system's highest sustained rate. */
  readonly ratePerS: number | undefined
  readonly corpus: string | undefined
  readonly burstEntriesMax: number | undefined
  readonly profiledRole: Profile['role'] | undefined
  readonly json: boolean
}

const usage = `npm run bench -- [options]

  --scenario NAMES      ${scenarios.map(({ name }) => name).join(',')}; default all
  --system NAMES        ${systemNames.join(',')}; default ${defaultSystems.join(',')}
  --seconds N           length of each measurement window; default 15, with --quick 4
  --quick               measures fewer rates
  --rate N              measures every system at N entries per second, and searches no highest sustained rate
  --corpus DIR          reads messages from the log files in DIR: a line is a message, the file name is the service
  --burst-entries N     ends a burst after N entries
  --profile api|worker  saturates each system once and writes CPU profiles of its API or worker
  --json                prints JSON instead of tables (npm run --silent bench -- --json > FILE)
  --help                prints this text
`

/** The options of the command line. Exits the process when they are invalid, or help is requested. */
export function readOptions(): BenchOptions {
  const commandLine = new CommandLine(usage)
  const values = commandLine.read({
    scenario: { type: 'string', multiple: true },
    system: { type: 'string', multiple: true },
    seconds: { type: 'string' },
    rate: { type: 'string' },
    corpus: { type: 'string' },
    'burst-entries': { type: 'string' },
    profile: { type: 'string' },
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  })
  if (process.platform !== 'linux') commandLine.fail('The benchmark requires Linux, because it reads /proc.')
  const seconds = values.seconds ?? (values.quick ? '4' : '15')
  const burstEntries = values['burst-entries']
  return {
    scenarios: readNames(commandLine, '--scenario', values.scenario, scenarios, ({ name }) => name),
    systems:
      values.system === undefined
        ? defaultSystems
        : readNames(commandLine, '--system', values.system, systemNames, (name) => name),
    windowMs: readPositive(commandLine, '--seconds', seconds) * 1_000,
    trialsMax: values.quick ? 2 : 4,
    ratePerS: values.rate === undefined ? undefined : readPositive(commandLine, '--rate', values.rate),
    corpus: values.corpus,
    burstEntriesMax:
      burstEntries === undefined ? undefined : readPositive(commandLine, '--burst-entries', burstEntries),
    profiledRole: readRole(commandLine, values.profile),
    json: values.json,
  }
}

/** @param given lists of names, comma-separated; all are chosen without it */
export function readNames<T>(
  commandLine: CommandLine,
  option: string,
  given: readonly string[] | undefined,
  all: readonly T[],
  nameOf: (each: T) => string,
): readonly T[] {
  if (given === undefined) return all
  const names = new Set(given.flatMap((each) => each.split(',')))
  const found = all.filter((each) => names.has(nameOf(each)))
  if (found.length !== names.size) commandLine.fail(`${option} takes any of ${all.map(nameOf).join(', ')}`)
  return found
}

export function readPositive(commandLine: CommandLine, option: string, given: string): number {
  const value = Number(given)
  const isPositive = Number.isFinite(value) && value > 0
  return isPositive ? value : commandLine.fail(`${option} must be a number greater than 0`)
}

function readRole(commandLine: CommandLine, given: string | undefined): Profile['role'] | undefined {
  if (given === undefined || given === 'api' || given === 'worker') return given
  return commandLine.fail('--profile must be api or worker')
}
