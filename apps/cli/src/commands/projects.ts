import { type Command, InvalidArgumentError } from 'commander'
import type { Context } from '../context.ts'
import type {
  CreateProjectOptions,
  DeleteProjectOptions,
  LimitChange,
  ListProjectsOptions,
  UpdateProjectOptions,
} from '../registry/projects.ts'
import { SLUICE } from '../program-name.ts'
import type { RedisFlags } from '../service-access.ts'
import { examples } from './help.ts'
import { integer, JSON_OPTION, withRedisOptions } from './options.ts'

const PROJECT_ID = `project id, as listed by \`${SLUICE} projects list\``
const RETENTION_DAYS_MAX = 36_500
const ENTRIES_RANGE = [1, 1_000_000_000] as const
const BYTES_RANGE = [1_024, 1_000_000_000_000] as const

const load = () => import('../registry/projects.ts')

export function addProjectsCommands(program: Command, context: Context): void {
  const projects = program
    .command('projects')
    .description('manage projects, which own API keys and rows')
    .addHelpText(
      'after',
      examples(
        ['projects create shop', 'create a project'],
        ['projects list', 'list the projects and their rate limits'],
      ),
    )

  withRedisOptions(
    projects
      .command('create')
      .description('create a project')
      .addHelpText(
        'after',
        examples(
          ['projects create shop', 'keeps its rows for 30 days'],
          ['projects create audit --retention-days 365', 'keeps its rows for a year'],
        ),
      )
      .argument('<id>', 'lower-case letters, digits and hyphens; cannot be changed later')
      .option(
        '--retention-days <days>',
        'days until rows expire: 1, 3, 7, 14, 30, 60, 90, 180, 365, 730 (default: 30)',
        integer(1, RETENTION_DAYS_MAX),
      ),
  ).action(async (id: string, options: CreateProjectOptions) =>
    (await load()).createProject(id, options, context),
  )

  withRedisOptions(
    projects
      .command('list')
      .description('list the projects and their rate limits')
      .addHelpText(
        'after',
        examples(
          ['projects list', 'as a table'],
          ['projects list --json', 'for a program; absent limits are the defaults of the API'],
        ),
      )
      .option(...JSON_OPTION),
  ).action(async (options: ListProjectsOptions) => (await load()).listProjects(options, context))

  withRedisOptions(
    projects
      .command('disable')
      .description('reject all requests of a project until it is enabled again; its keys and rows stay')
      .addHelpText('after', examples(['projects disable shop', 'takes effect within five seconds']))
      .argument('<id>', PROJECT_ID),
  ).action(async (id: string, options: RedisFlags) =>
    (await load()).setProjectEnabled(id, false, options, context),
  )

  withRedisOptions(
    projects
      .command('enable')
      .description('accept the requests of a disabled project again')
      .addHelpText('after', examples(['projects enable shop', 'takes effect within five seconds']))
      .argument('<id>', PROJECT_ID),
  ).action(async (id: string, options: RedisFlags) =>
    (await load()).setProjectEnabled(id, true, options, context),
  )

  withRedisOptions(
    projects
      .command('delete')
      .description('permanently delete a project and its keys; its rows stay until they expire')
      .addHelpText(
        'after',
        examples(
          ['projects delete shop', 'asks for confirmation'],
          ['projects delete shop --yes', 'for a script'],
        ),
      )
      .argument('<id>', PROJECT_ID)
      .option('--yes', 'do not ask for confirmation'),
  ).action(async (id: string, options: DeleteProjectOptions) =>
    (await load()).deleteProject(id, options, context),
  )

  withRedisOptions(
    projects
      .command('export')
      .description('write all projects, their limits and the hashes of their keys to stdout')
      .addHelpText('after', examples(['projects export', 'for a file; it contains no key'])),
  ).action(async (options: RedisFlags) => (await load()).exportProjects(options, context))

  withRedisOptions(
    projects
      .command('import')
      .description('store the projects and keys of an export; those that exist stay as they are')
      .addHelpText(
        'after',
        examples(
          ['projects import projects.json', 'restore a backup, deleted projects included'],
          ['projects import projects.json --prefix staging', 'into another installation'],
        ),
      )
      .argument('<file>', 'from `projects export`; - for stdin'),
  ).action(async (file: string, options: RedisFlags) => (await load()).importProjects(file, options, context))

  withRedisOptions(
    projects
      .command('update')
      .description("change a project's rate limits; takes effect within five seconds")
      .addHelpText(
        'after',
        examples(
          ['projects update shop --entries-per-second 1000 --burst-entries 5000', 'limit the entries'],
          ['projects update shop --bytes-per-second unlimited', 'no limit on bytes'],
          ['projects update shop --entries-per-second default', "the API's default"],
        ),
      )
      .argument('<id>', PROJECT_ID)
      .option(
        '--entries-per-second <limit>',
        "entries per second: a number, unlimited, or default (the API's setting)",
        rate(...ENTRIES_RANGE),
      )
      .option(
        '--burst-entries <limit>',
        'entries accepted at once after a pause: a number or default',
        burst(...ENTRIES_RANGE),
      )
      .option(
        '--bytes-per-second <limit>',
        'bytes of decoded bodies per second: a number, unlimited or default',
        rate(...BYTES_RANGE),
      )
      .option(
        '--burst-bytes <limit>',
        'bytes accepted at once after a pause: a number or default',
        burst(...BYTES_RANGE),
      ),
  ).action(async (id: string, options: UpdateProjectOptions) =>
    (await load()).updateProject(id, options, context),
  )
}

/** A parser for rates. The range is in the error only: the registry checks it. */
function rate(min: number, max: number): (text: string) => LimitChange {
  return (text) => (text === 'unlimited' ? text : limit(text, `from ${min} to ${max}, unlimited or default`))
}

function burst(min: number, max: number): (text: string) => LimitChange {
  return (text) => limit(text, `from ${min} to ${max}, or default`)
}

function limit(text: string, accepted: string): LimitChange {
  if (text === 'default') return text
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text)
  throw new InvalidArgumentError(`It must be a whole number ${accepted}.`)
}
