import type { Command } from 'commander'
import type { Context } from '../context.ts'
import type { StatusOptions } from '../status/show-status.ts'
import { examples } from './help.ts'
import { integer, withClickHouseOptions, withRedisOptions } from './options.ts'

/** Long enough for a rate, and short enough to wait for. */
const INTERVAL_DEFAULT_S = 2
const INTERVAL_MAX_S = 60

export function addStatusCommand(program: Command, context: Context): void {
  withRedisOptions(
    withClickHouseOptions(
      program
        .command('status')
        .description('show rates, backlog, lag, processes, shards, dead letters and the memory of Redis')
        .addHelpText(
          'after',
          examples(
            ['status', 'once, after two seconds'],
            ['status --watch', 'refreshed every two seconds, until Ctrl-C'],
            ['status --watch --interval 10 --json', 'for a program, every ten seconds'],
          ),
        )
        .option('-w, --watch', 'refresh until Ctrl-C, which ends with exit code 0')
        .option(
          '--interval <seconds>',
          'the time over which rates are measured, and between refreshes',
          integer(1, INTERVAL_MAX_S),
          INTERVAL_DEFAULT_S,
        )
        .option('--json', 'print one JSON object; with --watch one per line and interval'),
    ),
  ).action(async (options: StatusOptions) => {
    const { showStatus } = await import('../status/show-status.ts')
    await showStatus(options, context)
  })
}
