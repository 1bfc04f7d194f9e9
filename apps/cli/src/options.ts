import { type Command, InvalidArgumentError, Option } from 'commander'
import { UsageError } from './errors.ts'

/** How users call the command line. Every help page, advice and error that names a command starts with it. */
export const SLUICE = 'sluice'

type Example = readonly [args: string, meaning: string]

/** Adds examples to the end of the help page of a command. */
export function withExamples(command: Command, ...given: readonly Example[]): Command {
  const width = Math.max(...given.map(([args]) => args.length))
  const lines = given.map(([args, meaning]) => `  ${SLUICE} ${args.padEnd(width)}  # ${meaning}`)
  return command.addHelpText('after', `\nExamples:\n${lines.join('\n')}`)
}

const CONNECTION_HEADING = 'Connection options:'

/** Call it after the other options: the help lists groups of options in the order in which they were added. */
export function withRedisOptions(command: Command): Command {
  return withConnectionOptions(command, {
    '--redis-url <url>': 'address of Redis (REDIS_URL)',
    '--prefix <text>': "prefix of the installation's keys in Redis (SLUICE_PREFIX)",
  })
}

/**
 * Call it after the other options, as `withRedisOptions`. There is no flag for the password: other users of the machine
 * can see flags.
 */
export function withClickHouseOptions(command: Command): Command {
  return withConnectionOptions(command, {
    '--clickhouse-url <url>': "address of ClickHouse's HTTP interface (CLICKHOUSE_URL)",
    '--clickhouse-username <name>':
      'ClickHouse user (CLICKHOUSE_USERNAME); the password comes from CLICKHOUSE_PASSWORD',
    '--clickhouse-database <name>': 'database with the tables (CLICKHOUSE_DATABASE)',
  })
}

export function withApiOptions(command: Command): Command {
  return withConnectionOptions(command, {
    '--api-url <url>': 'address of the API (SLUICE_API_URL)',
    '--api-key <key>': 'API key (SLUICE_API_KEY, which other users of the machine cannot see)',
  })
}

function withConnectionOptions(command: Command, options: Readonly<Record<string, string>>): Command {
  for (const [flags, description] of Object.entries(options))
    command.addOption(new Option(flags, description).helpGroup(CONNECTION_HEADING))
  return command
}

export const JSON_OPTION = ['--json', 'print one JSON object per line'] as const

/** A parser for options that are whole numbers. */
export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`)
  }
}

/** A parser for options that may be repeated. */
export function repeated(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}

/** A parser for options that may be repeated, and whose values may be comma-separated. */
export function list(text: string, before: readonly string[] = []): readonly string[] {
  const values = text.split(',').map((value) => value.trim())
  if (values.includes('')) throw new InvalidArgumentError('A value is empty.')
  return [...before, ...values]
}

/** @throws UsageError when the value of an option is not one of those allowed */
export function requireOneOf<Allowed extends string>(
  option: string,
  value: string,
  allowed: readonly Allowed[],
): Allowed {
  const found = allowed.find((one) => one === value)
  if (found !== undefined) return found
  throw new UsageError(`${option} must be one of ${allowed.join(', ')}, not "${value}"`)
}

/** For commands that retry or remove items: by their ids, or all of them. */
export function withChoice(command: Command, names: string, parse = repeated): Command {
  const ids = `ids, as listed by \`${SLUICE} ${command.parent?.name()} list\``
  return command.argument('[ids...]', ids, parse).option('--all', `all ${names}`)
}

/** Retrying or removing everything must be requested explicitly. @throws UsageError */
export function requireChoice(
  names: string,
  ids: readonly string[],
  all: true | undefined,
): readonly string[] | 'all' {
  if (ids.length > 0 === (all === true)) throw new UsageError(`name the ${names} by their ids, or pass --all`)
  return all ? 'all' : ids
}
