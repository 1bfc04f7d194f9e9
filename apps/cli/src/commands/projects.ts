import {
  type Project,
  type ProjectLimitChanges,
  type ProjectLimitName,
  type ProjectLimits,
  readBackup,
  writeBackup,
} from '@sluice/projects'
import { type Command, InvalidArgumentError } from 'commander'
import { readFile } from 'node:fs/promises'
import * as consumers from 'node:stream/consumers'
import type { Context } from '../context.ts'
import { throwReadError, UsageError } from '../errors.ts'
import { integer, JSON_OPTION, SLUICE, withExamples, withRedisOptions } from '../options.ts'
import { convertRegistryErrors, keysOf, withRegistry } from '../registry-session.ts'
import type { RedisFlags } from '../service-access.ts'
import { confirm, type Listing, printList } from '../terminal.ts'

const PROJECT_ID = `project id, as listed by \`${SLUICE} projects list\``
const RETENTION_DAYS_MAX = 36_500
const ENTRIES_RANGE = [1, 1_000_000_000] as const
const BYTES_RANGE = [1_024, 1_000_000_000_000] as const

export function define(projects: Command, context: Context): void {
  withExamples(
    projects,
    ['projects create shop', 'create a project'],
    ['projects list', 'list the projects and their rate limits'],
  )

  withExamples(
    withRedisOptions(
      projects
        .command('create')
        .description('create a project')
        .argument('<id>', 'lower-case letters, digits and hyphens; cannot be changed later')
        .option(
          '--retention-days <days>',
          'days until rows expire: 1, 3, 7, 14, 30, 60, 90, 180, 365, 730 (default: 30)',
          integer(1, RETENTION_DAYS_MAX),
        ),
    ),
    ['projects create shop', 'keeps its rows for 30 days'],
    ['projects create audit --retention-days 365', 'keeps its rows for a year'],
  ).action((id: string, options: CreateProjectOptions) => createProject(id, options, context))

  withExamples(
    withRedisOptions(
      projects
        .command('list')
        .description('list the projects and their rate limits')
        .option(...JSON_OPTION),
    ),
    ['projects list', 'as a table'],
    ['projects list --json', 'for a program; absent limits are the defaults of the API'],
  ).action((options: ListProjectsOptions) => listProjects(options, context))

  for (const [name, enabled, effect] of [
    ['disable', false, 'reject all requests of a project until it is enabled again; its keys and rows stay'],
    ['enable', true, 'accept the requests of a disabled project again'],
  ] as const) {
    withExamples(withRedisOptions(projects.command(name).description(effect).argument('<id>', PROJECT_ID)), [
      `projects ${name} shop`,
      'takes effect within five seconds',
    ]).action(async (id: string, options: RedisFlags) => {
      await withRegistry(options, context, (registry) => registry.projects.setEnabled(id, enabled))
      await context.stdout.write(
        enabled
          ? `Enabled the project ${id}. Its requests are accepted within five seconds.\n`
          : `Disabled the project ${id}. Its requests are rejected within five seconds.\n`,
      )
    })
  }

  withExamples(
    withRedisOptions(
      projects
        .command('delete')
        .description('permanently delete a project and its keys; its rows stay until they expire')
        .argument('<id>', PROJECT_ID)
        .option('--yes', 'do not ask for confirmation'),
    ),
    ['projects delete shop', 'asks for confirmation'],
    ['projects delete shop --yes', 'for a script'],
  ).action((id: string, options: DeleteProjectOptions) => deleteProject(id, options, context))

  withExamples(
    withRedisOptions(
      projects
        .command('export')
        .description('write all projects, their limits and the hashes of their keys to stdout'),
    ),
    ['projects export', 'for a file; it contains no key'],
  ).action((options: RedisFlags) => exportProjects(options, context))

  withExamples(
    withRedisOptions(
      projects
        .command('import')
        .description('store the projects and keys of an export; those that exist stay as they are')
        .argument('<file>', 'from `projects export`; - for stdin'),
    ),
    ['projects import projects.json', 'restore a backup, deleted projects included'],
    ['projects import projects.json --prefix staging', 'into another installation'],
  ).action((file: string, options: RedisFlags) => importProjects(file, options, context))

  const update = projects
    .command('update')
    .description("change a project's rate limits; takes effect within five seconds")
    .argument('<id>', PROJECT_ID)
  for (const [flags, description, [min, max]] of [
    ['--entries-per-second <limit>', 'entries per second: a number', ENTRIES_RANGE],
    ['--burst-entries <limit>', 'entries accepted at once after a pause: a number', ENTRIES_RANGE],
    ['--bytes-per-second <limit>', 'bytes of decoded bodies per second: a number', BYTES_RANGE],
    ['--burst-bytes <limit>', 'bytes accepted at once after a pause: a number', BYTES_RANGE],
  ] as const) {
    const words = flags.startsWith('--burst') ? ', or default' : ', unlimited or default'
    update.option(flags, `${description}${words} (the API's setting)`, (text): LimitChange => {
      if (text === 'default' || (text === 'unlimited' && words.includes(text))) return text
      // The range is in the error only: the registry checks it.
      if (/^[1-9]\d{0,14}$/.test(text)) return Number(text)
      throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}${words}.`)
    })
  }
  withExamples(
    withRedisOptions(update),
    ['projects update shop --entries-per-second 1000 --burst-entries 5000', 'limit the entries'],
    ['projects update shop --bytes-per-second unlimited', 'no limit on bytes'],
    ['projects update shop --entries-per-second default', "the API's default"],
  ).action((id: string, options: UpdateProjectOptions) => updateProject(id, options, context))
}

interface CreateProjectOptions extends RedisFlags {
  retentionDays?: number
}

async function createProject(id: string, options: CreateProjectOptions, context: Context): Promise<void> {
  const project = await withRegistry(options, context, (registry) =>
    registry.projects.create(id, options.retentionDays),
  )
  await context.stdout.write(
    `Created the project ${project.id}, which keeps its rows for ${project.retentionDays} days.\n` +
      `To create a key for it: ${SLUICE} keys create --project ${project.id}\n`,
  )
}

interface ListProjectsOptions extends RedisFlags {
  json?: true
}

async function listProjects(options: ListProjectsOptions, context: Context): Promise<void> {
  const projects = await withRegistry(options, context, (registry) => registry.projects.list())
  const listing: Listing<Project> = {
    headings: ['PROJECT', 'STATE', 'RETENTION', 'CREATED', 'ENTRIES/S', 'BURST', 'BYTES/S', 'BURST'],
    cells: ({ id, enabled, retentionDays, createdAt, limits = {} }) => [
      id,
      enabled ? 'enabled' : 'disabled',
      `${retentionDays} days`,
      createdAt,
      formatLimit(limits.entriesPerSecond),
      formatLimit(limits.burstEntries),
      formatLimit(limits.bytesPerSecond),
      formatLimit(limits.burstBytes),
    ],
    empty: `There are no projects yet. Create one with: ${SLUICE} projects create`,
  }
  await printList(projects, listing, options.json, context)
}

interface DeleteProjectOptions extends RedisFlags {
  yes?: true
}

async function deleteProject(id: string, options: DeleteProjectOptions, context: Context): Promise<void> {
  const keys = await withRegistry(options, context, (registry) => keysOf(registry, id))
  const consequence =
    `This permanently deletes the project ${id} and its ${keys.length === 1 ? 'key' : `${keys.length} keys`}. ` +
    'Its rows stay until they expire.'
  if (!options.yes) await confirm(context, consequence, id)
  // A second session: the confirmation may take minutes, and no connection stays open meanwhile.
  const idKeptUntil = await withRegistry(options, context, (registry) => registry.projects.delete(id))
  await context.stdout.write(
    `Deleted the project ${id}. Its rows stay until they expire; ` +
      `its id is free again on ${idKeptUntil.toISOString()}.\n`,
  )
}

/** 'default' is the limit that the API is configured with. */
type LimitChange = number | 'unlimited' | 'default'

/** Commander derives the names of the options from their flags; they are equal to the names of the limits. */
type UpdateProjectOptions = RedisFlags & { readonly [Name in ProjectLimitName]?: LimitChange }

/** The registry's value for an unlimited rate. */
const UNLIMITED = 0

async function updateProject(id: string, options: UpdateProjectOptions, context: Context): Promise<void> {
  const { redisUrl: _url, prefix: _prefix, ...given } = options
  const changes: ProjectLimitChanges = Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, toRegistryValue(value)]),
  )
  if (Object.keys(changes).length === 0) throw new UsageError('pass at least one limit to change')
  const project = await withRegistry(options, context, (registry) => registry.projects.setLimits(id, changes))
  await context.stdout.write(`${describeLimits(project.id, project.limits ?? {})}\n`)
}

function toRegistryValue(value: LimitChange): number | null {
  if (value === 'default') return null
  return value === 'unlimited' ? UNLIMITED : value
}

function describeLimits(id: string, limits: ProjectLimits): string {
  const { entriesPerSecond, burstEntries, bytesPerSecond, burstBytes } = limits
  return (
    `Limits of the project ${id}: ` +
    `entries per second ${formatLimit(entriesPerSecond)}, burst ${formatLimit(burstEntries)}; ` +
    `bytes per second ${formatLimit(bytesPerSecond)}, burst ${formatLimit(burstBytes)}.`
  )
}

function formatLimit(value: number | undefined): string {
  if (value === undefined) return 'default'
  return value === UNLIMITED ? 'unlimited' : String(value)
}

/** Writes all projects with the hashes of their keys to stdout. */
async function exportProjects(options: RedisFlags, context: Context): Promise<void> {
  const projects = await withRegistry(options, context, async (registry) => {
    const backups = []
    for (const project of await registry.projects.list())
      backups.push({ ...project, keys: await registry.keys.export(project.id) })
    return backups
  })
  await context.stdout.write(writeBackup(projects))
}

/** @param file `-` for stdin */
async function importProjects(file: string, options: RedisFlags, context: Context): Promise<void> {
  const content = await (file === '-'
    ? consumers.text(context.stdin)
    : readFile(file, 'utf8').catch(throwReadError(file)))
  const backups = await convertRegistryErrors(() => readBackup(content))
  await withRegistry(options, context, async (registry) => {
    for (const backup of backups) {
      const isImported = await registry.projects.import(backup)
      await context.stdout.write(
        isImported
          ? `Imported the project ${backup.id} with ${backup.keys.length} keys.\n`
          : `Left the project ${backup.id} as it is: it exists.\n`,
      )
    }
  })
}
