import type { Command } from 'commander'
import type { Context } from '../context.ts'
import type { LogsOptions } from '../logs/show-logs.ts'
import { examples } from './help.ts'
import { integer, JSON_OPTION, list, repeated, withClickHouseOptions, withRedisOptions } from './options.ts'

const LIMIT_DEFAULT = 100
/** ClickHouse sorts this many entries in memory, with all their texts. */
const LIMIT_MAX = 100_000

export function addLogsCommand(program: Command, context: Context): void {
  withRedisOptions(
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
        .option(
          '--environment <names>',
          'only these environments: development, staging, production; comma-separated or repeated',
          list,
        )
        .option('--search <text>', 'only entries with this text in the message; case is ignored')
        .option(
          '--where <condition>',
          'only entries with this value in the metadata, such as metadata.user.id=42; repeated: all of them',
          repeated,
        )
        .option('--limit <count>', 'maximum number of entries', integer(0, LIMIT_MAX), LIMIT_DEFAULT)
        .option(
          '-f, --follow',
          'then print new entries as they arrive, until Ctrl-C; --from and --until do not apply to them',
        )
        .option('--stack', 'print the stack traces of entries, too; --json always has them')
        .option(...JSON_OPTION),
    ),
  )
    .addHelpText('after', WHERE_HELP)
    .addHelpText(
      'after',
      examples(
        ['logs --project shop --follow', 'the newest entries, then new ones'],
        ['logs --project shop --level error --since 15m', 'errors of the last 15 minutes'],
        ['logs --project shop --from 2026-11-20T08:00Z --until 2026-11-20T09:00Z', 'one hour'],
        ['logs --project shop --where metadata.user.id=42', 'entries with this metadata'],
        ['logs --project shop --search timeout --limit 1000 --json', 'for a program'],
      ),
    )
    .action(async (options: LogsOptions) => {
      const { showLogs } = await import('../logs/show-logs.ts')
      await showLogs(options, context)
    })
}

const WHERE_HELP = `
--where compares a value of the metadata:
  metadata.user.id=42       the number 42 (also 42.0 or 4.2e1) or the string "42"
  metadata.ok=true          the boolean true or the string "true"; likewise false
  metadata.reason=null      null or the string "null"; an absent value does not match
  'metadata.user.id="42"'   the string "42" only
  'metadata."a b"=x'        a name with blanks, quotes or operators
Strings are compared with upper and lower case. Objects and arrays do not match. metadata.http.status is the status in
http, or the single name "http.status".`
