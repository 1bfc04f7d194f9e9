import { Command, CommanderError } from 'commander'
import packageJson from '../package.json' with { type: 'json' }
import type { Context } from './context.ts'
import { CliError, stackTrace, UsageError } from './errors.ts'
import { SLUICE, withExamples } from './options.ts'
import { escapeControls, painter } from './terminal.ts'

/** Adds the options, the subcommands and the action of a command. */
type Define = (command: Command, context: Context) => void

/** The file of a command is loaded only if the arguments name it: its packages take far longer to load than the help. */
const commands: readonly [name: string, description: string, load: () => Promise<{ define: Define }>][] = [
  ['projects', 'manage projects, which own API keys and rows', () => import('./commands/projects.ts')],
  ['keys', "manage a project's API keys", () => import('./commands/keys.ts')],
  ['migrate', "create or update ClickHouse's database and tables", () => import('./commands/migrate.ts')],
  ['logs', 'print the newest matching entries, oldest first', () => import('./commands/logs.ts')],
  ['send', 'send the lines of log files or of stdin as entries', () => import('./commands/send.ts')],
  ['status', 'show rates, backlog, lag, processes and memory', () => import('./commands/status.ts')],
  ['dead-letters', 'list, retry and remove rejected rows', () => import('./commands/dead-letters.ts')],
  ['failed-chunks', 'list, retry and remove failed chunks', () => import('./commands/failed-chunks.ts')],
]

const EXIT_CODE_USAGE = 2

/** Runs one command, and returns its exit code. Reports operating errors on stderr; throws programming errors. */
export async function run(args: readonly string[], context: Context): Promise<number> {
  const program = await createProgram(context, args)
  let running = program
  program.hook('preAction', (_program, command) => {
    running = command
  })
  try {
    await program.parseAsync(args, { from: 'user' })
    return context.exitCode
  } catch (error) {
    // Commander has already printed the error, or the requested help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_CODE_USAGE
    if (!(error instanceof CliError)) throw error
    const { stderr } = context
    await stderr.write(`${errorPrefix(stderr)} ${escapeControls(error.message)}\n`)
    if (error instanceof UsageError) await stderr.write(`${usageHint(running)}\n`)
    if (program.opts<{ debug?: true }>().debug)
      for (const line of stackTrace(error).split('\n')) await stderr.write(`${escapeControls(line)}\n`)
    return error.exitCode
  }
}

function errorPrefix({ colours }: Context['stderr']): string {
  return painter(colours)('red', 'sluice:')
}

/** Names the help of the command itself. */
function usageHint(command: Command): string {
  return `Run \`${commandPath(command)} --help\` for usage.`
}

function commandPath(command: Command): string {
  return command.parent === null ? SLUICE : `${commandPath(command.parent)} ${command.name()}`
}

/** @param args the commands that they name are complete. Of the others, only name and description are known */
export async function createProgram(context: Context, args: readonly string[]): Promise<Command> {
  const { stdout, stderr } = context
  const program = new Command(SLUICE)
    .description(
      'Show the status; manage projects, API keys, tables, dead letters and failed chunks; send and read logs.',
    )
    .version(packageJson.version, '-V, --version', 'print the version')
    .option('--debug', 'print the stack trace of an error')
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => void stdout.write(text),
      writeErr: (text) => void stderr.write(text),
      // Every error of the command line starts in the same way, whether Commander or a command finds it.
      outputError: (text, write) => {
        const lines = text.replace(/^error: /, '').split('\n')
        write(`${errorPrefix(stderr)} ${lines.map(escapeControls).join('\n')}`)
      },
    })
  withExamples(
    program,
    ['send /var/log/*.log', 'send the lines of files'],
    ['logs --project shop --follow', 'print the newest entries, then new ones'],
    ['keys create --project shop', 'create an API key'],
    ['status --watch', 'rates, backlog, lag, processes, memory of Redis'],
    ['help logs', 'show the options of a command'],
  ).addHelpText('after', SETTINGS_HELP)
  for (const [name, description, load] of commands) {
    const command = program.command(name).description(description)
    if (args.includes(name)) (await load()).define(command, context)
  }
  setUsageHints(program)
  return program
}

function setUsageHints(command: Command): void {
  command.showHelpAfterError(usageHint(command))
  for (const child of command.commands) setUsageHints(child)
}

const SETTINGS_HELP = `
Connection settings come from flags, else from the environment, else from the services that \`npm start\` runs:
  projects, keys, failed-chunks
                               REDIS_URL, REDIS_TLS_CA_FILE, REDIS_SENTINEL_PASSWORD, REDIS_REPLICAS_ACK,
                               SLUICE_PREFIX
  migrate, logs, dead-letters  CLICKHOUSE_URL, CLICKHOUSE_USERNAME, CLICKHOUSE_PASSWORD, CLICKHOUSE_DATABASE,
                               CLICKHOUSE_CLUSTER, CLICKHOUSE_TLS_CA_FILE
  send                         SLUICE_API_URL, SLUICE_API_KEY
  status                       those of Redis and ClickHouse, and REDIS_MEMORY_BYTES

Other variables: SLUICE_DATA_DIR is the folder of the data of \`npm start\` (default: .data). NO_COLOR turns colours off.

Exit codes: 0 success, 1 failure or rejected entries, 2 usage error, 130 interrupted.
Ctrl-C is a success for status --watch.`
