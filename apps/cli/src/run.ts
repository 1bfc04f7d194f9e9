import { Command, CommanderError } from 'commander'
import packageJson from '../package.json' with { type: 'json' }
import type { Context } from './context.ts'
import { isForUser, stackTrace } from './errors.ts'
import { SLUICE, withExamples } from './options.ts'
import { escapeControls, painter } from './terminal.ts'

type Define = (command: Command, context: Context) => void

/** The file of a command is loaded only if the arguments name it: its packages take far longer to load than the help. */
const commands: readonly [name: string, description: string, load: () => Promise<{ define: Define }>][] = [
  ['projects', 'manage projects, which own API keys and rows', () => import('./commands/projects.ts')],
  ['keys', "manage a project's API keys", () => import('./commands/keys.ts')],
  ['migrate', "create or update ClickHouse's database and tables", () => import('./commands/migrate.ts')],
  ['logs', 'print the newest matching entries, oldest first', () => import('./commands/logs.ts')],
  ['open', 'open the explorer in the browser, signed in', () => import('./commands/open.ts')],
  ['rows', 'delete stored rows of a project', () => import('./commands/rows.ts')],
  ['send', 'send the lines of log files or of stdin as entries', () => import('./commands/send.ts')],
  ['demo', 'send entries of a small shop, to try the rest', () => import('./commands/demo.ts')],
  ['status', 'show rates, backlog, lag, processes and memory', () => import('./commands/status.ts')],
  ['dead-letters', 'list, retry and remove rejected rows', () => import('./commands/dead-letters.ts')],
  ['failed-chunks', 'list, retry and remove failed chunks', () => import('./commands/failed-chunks.ts')],
]

/** Runs one command, and returns its exit code. Reports operating errors on stderr; throws programming errors. */
export async function run(args: readonly string[], context: Context): Promise<number> {
  const program = await createProgram(context, args)
  try {
    await program.parseAsync(args, { from: 'user' })
    return context.exitCode
  } catch (error) {
    // Commander has already printed the error, or the requested help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    if (!isForUser(error)) throw error
    const { stderr } = context
    await stderr.write(`${errorPrefix(stderr)} ${escapeControls(error.message)}\n`)
    if (program.opts<{ debug?: true }>().debug)
      for (const line of stackTrace(error).split('\n')) await stderr.write(`${escapeControls(line)}\n`)
    return 1
  }
}

const errorPrefix = ({ colours }: Context['stderr']): string => painter(colours)('red', 'sluice:')

/** @param args the commands that they name are complete. Of the others, only name and description are known */
export async function createProgram(context: Context, args: readonly string[]): Promise<Command> {
  const { stdout, stderr } = context
  const program = new Command(SLUICE)
    .description('Send and read logs; show the status; manage projects, API keys and what was rejected.')
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
    ['logs --follow', 'print the newest entries, then new ones'],
    ['keys create --project shop', 'create an API key'],
    ['status --watch', 'rates, backlog, lag, processes, memory of Redis'],
    ['help logs', 'show the options of a command'],
  ).addHelpText('after', SETTINGS_HELP)
  for (const [name, description, load] of commands) {
    const command = program.command(name).description(description)
    if (args.includes(name)) (await load()).define(command, context)
  }
  setUsageHints(program, SLUICE)
  return program
}

function setUsageHints(command: Command, path: string): void {
  command.showHelpAfterError(`Run \`${path} --help\` for usage.`)
  for (const child of command.commands) setUsageHints(child, `${path} ${child.name()}`)
}

const SETTINGS_HELP = `
Connection settings come from flags, else from the environment, else from the services that \`npm start\` runs:
  Redis       REDIS_URL, REDIS_TLS_CA_FILE, REDIS_SENTINEL_PASSWORD, REDIS_REPLICAS_ACK, REDIS_MEMORY_BYTES, SLUICE_PREFIX
  ClickHouse  CLICKHOUSE_URL, CLICKHOUSE_USERNAME, CLICKHOUSE_PASSWORD, CLICKHOUSE_DATABASE, CLICKHOUSE_CLUSTER,
              CLICKHOUSE_TLS_CA_FILE
  API         SLUICE_API_URL, SLUICE_API_KEY
  Query API   SLUICE_QUERY_URL, SLUICE_READ_KEY

Other variables: SLUICE_DATA_DIR is the folder of the data of \`npm start\` (default: .data). NO_COLOR turns colours off.
PAGER shows long output of logs (default: less -R).

Exit codes: 0 success, 1 failure or rejected entries, 2 usage error, 130 interrupted.
Ctrl-C is a success for status --watch.`
