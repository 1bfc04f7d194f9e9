import { Command, CommanderError } from 'commander'
import { addDeadLettersCommands } from './commands/dead-letters.ts'
import { addFailedChunksCommands } from './commands/failed-chunks.ts'
import { addKeysCommands } from './commands/keys.ts'
import { addLogsCommand } from './commands/logs.ts'
import { addMigrateCommand } from './commands/migrate.ts'
import { addProjectsCommands } from './commands/projects.ts'
import { addSendCommand } from './commands/send.ts'
import type { Context } from './context.ts'
import { CliError, UsageError } from './errors.ts'
import { escapeControls, painter } from './terminal.ts'

const EXIT_CODE_USAGE = 2
const USAGE_HINT = 'Run `sluice help` for usage.'

/** Runs one command, and returns its exit code. Reports operating errors on stderr; throws programming errors. */
export async function run(args: readonly string[], context: Context): Promise<number> {
  try {
    await createProgram(context).parseAsync(args, { from: 'user' })
    return context.exitCode
  } catch (error) {
    // Commander has already printed the error, or the requested help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_CODE_USAGE
    if (!(error instanceof CliError)) throw error
    const paint = painter(context.stderr.colours)
    await context.stderr.write(`${paint('red', 'sluice:')} ${escapeControls(error.message)}\n`)
    if (error instanceof UsageError) await context.stderr.write(`${USAGE_HINT}\n`)
    return error.exitCode
  }
}

function createProgram(context: Context): Command {
  const program = new Command('sluice')
    .description('Manage projects, API keys, tables, dead letters and failed chunks; send and read logs.')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void context.stdout.write(text),
      writeErr: (text) => void context.stderr.write(text),
    })
    .showHelpAfterError(USAGE_HINT)
    .addHelpText('after', SETTINGS_HELP)
  addProjectsCommands(program, context)
  addKeysCommands(program, context)
  addMigrateCommand(program, context)
  addLogsCommand(program, context)
  addSendCommand(program, context)
  addDeadLettersCommands(program, context)
  addFailedChunksCommands(program, context)
  return program
}

const SETTINGS_HELP = `
Connection settings come from flags, else from the environment, else from the services that \`npm start\` runs:
  projects, keys, failed-chunks
                               REDIS_URL, REDIS_TLS_CA_FILE, REDIS_SENTINEL_PASSWORD, SLUICE_PREFIX
  migrate, logs, dead-letters  CLICKHOUSE_URL, CLICKHOUSE_USERNAME, CLICKHOUSE_PASSWORD, CLICKHOUSE_DATABASE,
                               CLICKHOUSE_CLUSTER, CLICKHOUSE_TLS_CA_FILE
  send                         SLUICE_API_URL, SLUICE_API_KEY

Exit codes: 0 success, 1 failure or rejected entries, 2 usage error, 130 interrupted.`
