import { type Command, InvalidArgumentError } from 'commander'

export interface RedisFlags {
  redisUrl?: string
  prefix?: string
}

export function withRedisOptions(command: Command): Command {
  return command
    .option('--redis-url <url>', 'Redis (REDIS_URL)')
    .option('--prefix <text>', 'sets installations apart that share a Redis (SLUICE_PREFIX)')
}

export interface ClickHouseFlags {
  clickhouseUrl?: string
  clickhouseUsername?: string
  clickhouseDatabase?: string
}

/** There is no flag for the password: other users of the machine can see flags. */
export function withClickHouseOptions(command: Command): Command {
  return command
    .option('--clickhouse-url <url>', "ClickHouse's HTTP interface (CLICKHOUSE_URL)")
    .option('--clickhouse-username <name>', 'the user for ClickHouse (CLICKHOUSE_USERNAME)')
    .option('--clickhouse-database <name>', 'the database that holds the tables (CLICKHOUSE_DATABASE)')
}

export const JSON_OPTION = ['--json', 'one JSON object a line'] as const

/** A parser for options that take a whole number. */
export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It takes a whole number from ${min} to ${max}.`)
  }
}

/** A parser for options that may be repeated, and take several values with commas between them. */
export function list(text: string, before: readonly string[] = []): readonly string[] {
  const values = text.split(',').map((value) => value.trim())
  if (values.includes('')) throw new InvalidArgumentError('A value is empty.')
  return [...before, ...values]
}
