import { Command, CommanderError } from 'commander'
import { addDeadLettersCommands } from './commands/dead-letters.ts'
import { addKeysCommands } from './commands/keys.ts'
import { addLogsCommand } from './commands/logs.ts'
import { addMigrateCommand } from './commands/migrate.ts'
import { addProjectsCommands } from './commands/projects.ts'
import { addSendCommand } from './commands/send.ts'
import type { Context } from './context.ts'
import { CliError, UsageError } from './errors.ts'
import { escapeControls, painter } from './terminal.ts'

const EXIT_CODE_USAGE = 2

/** Runs one command. Errors of programming are thrown; all others are said, and end as the exit code that it returns. */
export async function run(args: readonly string[], context: Context): Promise<number> {
  try {
    await createProgram(context).parseAsync(args, { from: 'user' })
    return context.exitCode
  } catch (error) {
    // Commander has said already what is wrong, or shown the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_CODE_USAGE
    if (!(error instanceof CliError)) throw error
    const paint = painter(context.stderr.colours)
    await context.stderr.write(`${paint('red', 'sluice:')} ${escapeControls(error.message)}\n`)
    if (error instanceof UsageError) await context.stderr.write('See sluice help.\n')
    return error.exitCode
  }
}

function createProgram(context: Context): Command {
  const program = new Command('sluice')
    .description('Projects, keys, migrations, sending and reading logs, dead letters.')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void context.stdout.write(text),
      writeErr: (text) => void context.stderr.write(text),
    })
    .showHelpAfterError('See sluice help.')
    .addHelpText('after', SETTINGS_HELP)
  addProjectsCommands(program, context)
  addKeysCommands(program, context)
  addMigrateCommand(program, context)
  addLogsCommand(program, context)
  addSendCommand(program, context)
  addDeadLettersCommands(program, context)
  return program
}

const SETTINGS_HELP = `
Connections come from flags, else from the environment (REDIS_URL, SLUICE_PREFIX, CLICKHOUSE_URL, CLICKHOUSE_TLS_CA_FILE,
CLICKHOUSE_CLUSTER, CLICKHOUSE_USERNAME, CLICKHOUSE_PASSWORD, CLICKHOUSE_DATABASE, SLUICE_API_URL, SLUICE_API_KEY), else
from what npm start runs.

Exit codes: 0 done, 1 failed or something was rejected, 2 called in a wrong way, 130 interrupted.`
