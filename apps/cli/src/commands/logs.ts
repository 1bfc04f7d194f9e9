import type { Command } from 'commander'
import type { Context } from '../context.ts'
import type { LogsOptions } from '../logs/show-logs.ts'
import { integer, JSON_OPTION, list, withClickHouseOptions } from './options.ts'

const LIMIT_DEFAULT = 100
/** ClickHouse sorts this many entries in memory, with all their texts. */
const LIMIT_MAX = 100_000

export function addLogsCommand(program: Command, context: Context): void {
  withClickHouseOptions(
    program
      .command('logs')
      .description('print the newest matching entries, oldest first')
      .option('--project <id>', 'project that the entries belong to (default: the project of `npm start`)')
      .option(
        '--level <levels>',
        'only these levels: log, debug, info, success, warn, error; comma-separated or repeated',
        list,
      )
      .option(
        '--from <when>',
        'only entries from this time on: a duration ago (15m, 2h, 3d) or an ISO 8601 time',
      )
      .option('--since <when>', 'the same as --from')
      .option(
        '--until <when>',
        'only entries before this time, as for --from; +1h is ahead of now (default: +1h, which hides entries of the future)',
      )
      .option('--service <name>', 'only entries of this service')
      .option('--search <text>', 'only entries with this text in the message; case is ignored')
      .option('--limit <count>', 'maximum number of entries', integer(0, LIMIT_MAX), LIMIT_DEFAULT)
      .option(
        '-f, --follow',
        'then print new entries as they arrive, until Ctrl-C; --from and --until do not apply to them',
      )
      .option(...JSON_OPTION),
  ).action(async (options: LogsOptions) => {
    const { showLogs } = await import('../logs/show-logs.ts')
    await showLogs(options, context)
  })
}
