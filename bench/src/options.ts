import { parseArgs } from 'node:util'
import { scenarios, type Scenario } from './scenarios.ts'
import { systemNames, type Profile, type SystemName } from './systems/system.ts'

export interface BenchOptions {
  readonly scenarios: readonly Scenario[]
  readonly systems: readonly SystemName[]
  /** How long each measured window is. */
  readonly windowMs: number
  /** How many rates the search for the highest one tries. */
  readonly trialsMax: number
  readonly corpus: string | undefined
  readonly burstEntriesMax: number | undefined
  readonly profiledRole: Profile['role'] | undefined
  readonly json: boolean
}

/** What was asked for cannot be done; the message is for the person who asked. */
export class UsageError extends Error {
  override name = 'UsageError'
}

export const usage = `npm run bench -- [options]

  --scenario NAMES      ${scenarios.map(({ name }) => name).join(',')}; all of them without it
  --system NAMES        ${systemNames.join(',')}; all of them without it
  --seconds N           length of each measured window; 15 without it, 4 with --quick
  --quick               fewer rates are tried
  --corpus DIR          takes messages from the log files in a folder: a line is a message, a file's name its service
  --burst-entries N     ends a burst after so many entries
  --profile api|worker  saturates the systems once, and writes CPU profiles of their API or worker
  --json                prints JSON instead of tables (npm run --silent bench -- --json > FILE)
`

/** @throws UsageError */
export function readOptions(args: readonly string[]): BenchOptions | 'help' {
  const { values } = parse(args)
  if (values.help) return 'help'
  const seconds = positive('--seconds', values.seconds) ?? (values.quick ? 4 : 15)
  return {
    scenarios: chosen('--scenario', values.scenario, scenarios, ({ name }) => name),
    systems: chosen('--system', values.system, systemNames, (name) => name),
    windowMs: seconds * 1_000,
    trialsMax: values.quick ? 2 : 4,
    corpus: values.corpus,
    burstEntriesMax: positive('--burst-entries', values['burst-entries']),
    profiledRole: profiled(values.profile),
    json: values.json,
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        scenario: { type: 'string', multiple: true },
        system: { type: 'string', multiple: true },
        seconds: { type: 'string' },
        corpus: { type: 'string' },
        'burst-entries': { type: 'string' },
        profile: { type: 'string' },
        quick: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

function chosen<T>(
  option: string,
  given: readonly string[] | undefined,
  all: readonly T[],
  nameOf: (each: T) => string,
): readonly T[] {
  if (given === undefined) return all
  const names = new Set(given.flatMap((each) => each.split(',')))
  const found = all.filter((each) => names.has(nameOf(each)))
  if (found.length !== names.size) throw new UsageError(`${option} takes ${all.map(nameOf).join(', ')}`)
  return found
}

function positive(option: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined
  const value = Number(given)
  if (!Number.isFinite(value) || value <= 0) throw new UsageError(`${option} takes a number above 0`)
  return value
}

function profiled(given: string | undefined): Profile['role'] | undefined {
  if (given === undefined || given === 'api' || given === 'worker') return given
  throw new UsageError('--profile takes api or worker')
}
