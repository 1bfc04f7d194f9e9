import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { type ClickHouseFlags, integer, JSON_OPTION, list, withClickHouseOptions } from './options.ts'

const LIMIT_DEFAULT = 100
/** ClickHouse sorts as many entries in its memory, with all their texts. */
const LIMIT_MAX = 100_000

export interface LogsOptions extends ClickHouseFlags {
  project?: string
  level?: readonly string[]
  since?: string
  service?: string
  search?: string
  limit: number
  follow?: true
  json?: true
}

export function addLogsCommand(program: Command, context: Context): void {
  withClickHouseOptions(program.command('logs'))
    .description('read entries: the newest that match, oldest first')
    .option('--project <id>', 'whose entries; the project that npm start made, if it is left out')
    .option('--level <levels>', 'log, debug, info, success, warn, error; several with commas', list)
    .option('--since <when>', 'not older than a time ago (15m, 2h, 3d), or than an ISO 8601 time')
    .option('--service <name>', 'only of this service')
    .option('--search <text>', 'only with this text in the message, in upper or lower case')
    .option('--limit <count>', 'at most as many', integer(0, LIMIT_MAX), LIMIT_DEFAULT)
    .option(
      '-f, --follow',
      'go on with the entries that arrive, until Ctrl-C; --since does not apply to them',
    )
    .option(...JSON_OPTION)
    .action(async (options: LogsOptions) => {
      const { showLogs } = await import('../logs/show-logs.ts')
      await showLogs(options, context)
    })
}
