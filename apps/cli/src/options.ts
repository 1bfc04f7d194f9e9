import { type Command, InvalidArgumentError, Option } from 'commander'
import { CliError } from './errors.ts'

/** How users call the command line. Every help page, advice and error that names a command starts with it. */
export const SLUICE = './sluice'

export function withExamples(
  command: Command,
  ...examples: (readonly [args: string, meaning: string])[]
): Command {
  const width = Math.max(...examples.map(([args]) => args.length))
  const lines = examples.map(([args, meaning]) => `  ${SLUICE} ${args.padEnd(width)}  # ${meaning}`)
  const position = command.parent === null ? 'after' : 'afterAll'
  return command.addHelpText(position, `\nExamples:\n${lines.join('\n')}`)
}

/** There is no flag for a password: other users of the machine can see flags. */
const connections = {
  redis: {
    '--redis-url <url>': 'address of Redis (REDIS_URL)',
    '--prefix <text>': "prefix of the installation's keys in Redis (SLUICE_PREFIX)",
  },
  clickhouse: {
    '--clickhouse-url <url>': "address of ClickHouse's HTTP interface (CLICKHOUSE_URL)",
    '--clickhouse-username <name>':
      'ClickHouse user (CLICKHOUSE_USERNAME); the password comes from CLICKHOUSE_PASSWORD',
    '--clickhouse-database <name>': 'database with the tables (CLICKHOUSE_DATABASE)',
  },
  api: {
    '--api-url <url>': 'address of the API (SLUICE_API_URL)',
    '--api-key <key>': 'API key (SLUICE_API_KEY, which other users of the machine cannot see)',
  },
  query: {
    '--query-url <url>':
      'address of the query API (SLUICE_QUERY_URL); the key comes from SLUICE_READ_KEY, and names the project',
  },
} as const

/** Adds the flags with which a command and its subcommands find services. Call it after the command's other options. */
export function withConnections(command: Command, ...services: (keyof typeof connections)[]): Command {
  for (const [flags, description] of services.flatMap((service) => Object.entries(connections[service])))
    command.addOption(new Option(flags, description).helpGroup('Connection options:'))
  return command
}

export const JSON_OPTION = ['--json', 'print one JSON object per line'] as const

export function integer(min: number, max: number): (value: string) => number {
  return (value) => {
    const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
    if (number >= min && number <= max) return number
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`)
  }
}

export const LIMIT_OPTION = ['--limit <count>', 'maximum number of items', integer(1, 10_000), 100] as const

/** A parser for options that have some of a few values, comma-separated or repeated, in upper or lower case. */
export function someOf<Allowed extends string>(
  allowed: readonly Allowed[],
): (value: string, before?: readonly Allowed[]) => readonly Allowed[] {
  return (value, before = []) => {
    const added = value.split(',').map((name) => {
      const found = allowed.find((each) => each === name.trim().toLowerCase())
      if (found !== undefined) return found
      throw new InvalidArgumentError(`Allowed choices are ${allowed.join(', ')}.`)
    })
    return [...new Set([...before, ...added])]
  }
}

/** @throws CliError that says what a command would delete, unless the user has confirmed it */
export function requireYes(yes: true | undefined, what: string): void {
  if (!yes) throw new CliError(`this would permanently delete ${what}. Pass --yes to confirm`)
}

/**
 * Makes a command act on the items of its group that are named by their ids, or on all of them, which must be requested explicitly.
 *
 * @param describeAll of a command that deletes: what `--all` deletes. The user must confirm it
 */
export function withChoice(
  command: Command,
  act: (choice: readonly string[] | 'all') => Promise<void>,
  describeAll?: () => Promise<string>,
): void {
  if (describeAll !== undefined) command.option('--yes', 'confirms that all are to be deleted')
  const group = command.parent?.name() ?? ''
  const names = group.replace('-', ' ')
  command
    .argument('[ids...]', `ids, as listed by \`${SLUICE} ${group} list\``)
    .option('--all', `all ${names}`)
    .action(async (given: string[], { all, yes }: { all?: true; yes?: true }) => {
      if (given.length > 0 === (all === true)) command.error(`name the ${names} by their ids, or pass --all`)
      if (all && describeAll !== undefined) requireYes(yes, yes ? '' : await describeAll())
      await act(all ? 'all' : given)
    })
}
