import { type Command, InvalidArgumentError, Option } from 'commander'

/*
 * Every command definition is loaded at start-up, before it is known which command runs. Definitions therefore import no
 * package except commander. Each action imports its implementation when it runs.
 */

const CONNECTION_HEADING = 'Connection options:'

/** Call it after the other options: the help lists groups of options in the order in which they were added. */
export function withRedisOptions(command: Command): Command {
  return command
    .addOption(connectionOption('--redis-url <url>', 'address of Redis (REDIS_URL)'))
    .addOption(
      connectionOption('--prefix <text>', "prefix of the installation's keys in Redis (SLUICE_PREFIX)"),
    )
}

/**
 * Call it after the other options, as `withRedisOptions`. There is no flag for the password: other users of the machine
 * can see flags.
 */
export function withClickHouseOptions(command: Command): Command {
  return command
    .addOption(
      connectionOption('--clickhouse-url <url>', "address of ClickHouse's HTTP interface (CLICKHOUSE_URL)"),
    )
    .addOption(
      connectionOption(
        '--clickhouse-username <name>',
        'ClickHouse user (CLICKHOUSE_USERNAME); the password comes from CLICKHOUSE_PASSWORD',
      ),
    )
    .addOption(
      connectionOption('--clickhouse-database <name>', 'database with the tables (CLICKHOUSE_DATABASE)'),
    )
}

export function withApiOptions(command: Command): Command {
  return command
    .addOption(connectionOption('--api-url <url>', 'address of the API (SLUICE_API_URL)'))
    .addOption(
      connectionOption(
        '--api-key <key>',
        'API key (SLUICE_API_KEY, which other users of the machine cannot see)',
      ),
    )
}

function connectionOption(flags: string, description: string): Option {
  return new Option(flags, description).helpGroup(CONNECTION_HEADING)
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
