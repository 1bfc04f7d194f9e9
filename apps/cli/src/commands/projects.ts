import { type Project, type ProjectChanges, readBackup, type Registry, writeBackup } from '@sluice/projects'
import { type Command, InvalidArgumentError } from 'commander'
import { readFile } from 'node:fs/promises'
import * as consumers from 'node:stream/consumers'
import type { Context } from '../context.ts'
import { throwReadError } from '../errors.ts'
import { integer, JSON_OPTION, requireYes, SLUICE, withConnections, withExamples } from '../options.ts'
import { keysOf, withRegistry } from '../redis-session.ts'
import type { Flags } from '../service-access.ts'
import { type Listing, printList } from '../terminal.ts'
import { deleteRows } from './rows.ts'

export function define(projects: Command, context: Context): void {
  const { stdin, stdout } = context
  const withProjects = <Result>(task: (registry: Registry) => Promise<Result>): Promise<Result> =>
    withRegistry(projects.opts(), context, task)
  const command = (name: string, description: string): Command =>
    projects
      .command(name)
      .description(description)
      .argument('<id>', `project id, as listed by \`${SLUICE} projects list\``)

  withExamples(
    withConnections(projects, 'redis'),
    ['projects create audit --retention-days 365', 'keeps its rows for a year; 30 days without the option'],
    ['projects list --json', 'for a program; absent limits are the defaults of the API'],
    ['projects update shop --entries-per-second 1000 --burst-entries 5000', 'limits the entries'],
    ['projects update shop --bytes-per-second unlimited --burst-bytes default', "none; the API's default"],
    ['projects delete shop --rows --yes', 'its rows, too; without --yes, shows what would be deleted'],
  )

  projects
    .command('create')
    .description('create a project')
    .argument('<id>', 'lower-case letters, digits and hyphens; cannot be changed later')
    .option('--retention-days <days>', `${RETENTIONS} (default: 30)`, integer(1, 730))
    .action(async (id: string, { retentionDays: days }: { retentionDays?: number }) => {
      const { retentionDays } = await withProjects((registry) => registry.projects.create(id, days))
      await stdout.write(
        `Created the project ${id}, which keeps its rows for ${retentionDays} days.\n` +
          `To create a key for it: ${SLUICE} keys create --project ${id}\n`,
      )
    })

  projects
    .command('list')
    .description('list the projects and their rate limits')
    .option(...JSON_OPTION)
    .action(async ({ json }: { json?: true }) => {
      await printList(await withProjects((registry) => registry.projects.list()), listing, json, context)
    })

  for (const [name, done, effect, outcome] of [
    ['disable', 'Disabled', 'reject all requests of a project until it is enabled again', 'rejected'],
    ['enable', 'Enabled', 'accept the requests of a disabled project again', 'accepted'],
  ] as const)
    command(name, effect).action(async (id: string) => {
      await withProjects((registry) => registry.projects.update(id, { enabled: name === 'enable' }))
      await stdout.write(`${done} the project ${id}. Its requests are ${outcome} within five seconds.\n`)
    })

  withConnections(
    command('delete', 'permanently delete a project and its keys; its rows expire later, without --rows')
      .option('--rows', 'delete its rows and dead letters, too')
      .option('--yes', 'confirms that the project is to be deleted'),
    'clickhouse',
  ).action(async (id: string, given: Flags & { rows?: true; yes?: true }) => {
    const { rows, yes } = given
    const keys = (await withProjects((registry) => keysOf(registry, id))).length
    const what = `the project ${id} and its ${keys === 1 ? 'key' : `${keys} keys`}`
    const remove = async (): Promise<void> => {
      const idKeptUntil = await withProjects((registry) => registry.projects.delete(id))
      const rest = `Its ${rows ? '' : 'rows stay until they expire; its '}id is free again on`
      await stdout.write(`Deleted the project ${id}. ${rest} ${idKeptUntil.toISOString()}.\n`)
    }
    const owner = { what, delete: remove }
    if (rows)
      return deleteRows({ ...projects.opts(), ...given, project: id, query: { type: 'all' } }, context, owner)
    requireYes(yes, `${what}; its rows would stay until they expire`)
    return remove()
  })

  projects
    .command('export')
    .description('write all projects, their limits and the hashes of their keys to stdout')
    .action(async () => {
      await withProjects(async (registry) => {
        const exported = []
        for (const project of await registry.projects.list())
          exported.push({ ...project, keys: await registry.keys.export(project.id) })
        await stdout.write(writeBackup(exported))
      })
    })

  projects
    .command('import')
    .description('store the projects and keys of an export; those that exist stay as they are')
    .argument('<file>', 'from `projects export`; - for stdin')
    .action(async (file: string) => {
      const content =
        file === '-' ? await consumers.text(stdin) : await readFile(file, 'utf8').catch(throwReadError(file))
      await withProjects(async (registry) => {
        for (const project of readBackup(content)) {
          const { id, keys } = project
          const isImported = await registry.projects.import(project)
          const imported = `Imported the project ${id} with ${keys.length} keys.\n`
          await stdout.write(isImported ? imported : `Left the project ${id} as it is: it exists.\n`)
        }
        await registry.identity.accept()
      })
    })

  projects
    .command('accept')
    .description('take the projects in Redis as those of this installation, after Redis has lost its data')
    .action(async () => {
      await withProjects((registry) => registry.identity.accept())
      await stdout.write('Accepted the projects in Redis. All processes know within ten seconds.\n')
    })

  const update = command('update', "change a project's retention or limits; takes effect within five seconds")
  update.option('--retention-days <days>', `${RETENTIONS}; of new rows only`, integer(1, 730))
  for (const [flags, limit, mayBeUnlimited] of [
    ['--entries-per-second <limit>', 'entries per second', true],
    ['--burst-entries <limit>', 'entries accepted at once after a pause', false],
    ['--bytes-per-second <limit>', 'bytes of decoded bodies per second', true],
    ['--burst-bytes <limit>', 'bytes accepted at once after a pause', false],
  ] as const) {
    const values = mayBeUnlimited ? 'a whole number, unlimited or default' : 'a whole number or default'
    update.option(flags, `${limit}: ${values} (the API's setting)`, (value): number | 'default' => {
      if (value === 'default') return value
      if (value === 'unlimited' && mayBeUnlimited) return UNLIMITED
      if (/^[1-9]\d{0,14}$/.test(value)) return Number(value)
      throw new InvalidArgumentError(`It must be ${values}.`)
    })
  }
  update.action(async (id: string, given: Readonly<Record<string, number | 'default'>>) => {
    // Commander derives the names of the options from their flags; they are equal to the names of the limits.
    const entries = Object.entries(given).map(([name, value]) => [name, value === 'default' ? null : value])
    if (entries.length === 0) update.error('pass a retention or at least one limit to change')
    const changes = Object.fromEntries(entries) as ProjectChanges
    const { limits } = await withProjects((registry) => registry.projects.update(id, changes))
    if (changes.retentionDays !== undefined)
      await stdout.write(
        `Retention of the project ${id}: ${changes.retentionDays} days for new rows. Stored rows keep their day of expiry.\n`,
      )
    const [entriesPerSecond, burstEntries, bytesPerSecond, burstBytes] = limitCells(limits)
    await stdout.write(
      `Limits of the project ${id}: entries per second ${entriesPerSecond}, burst ${burstEntries}; ` +
        `bytes per second ${bytesPerSecond}, burst ${burstBytes}.\n`,
    )
  })
}

const RETENTIONS = 'days until rows expire: 1, 3, 7, 14, 30, 60, 90, 180, 365, 730'

/** The registry's value for an unlimited rate. */
const UNLIMITED = 0

function limitCells(limits: Project['limits'] = {}): string[] {
  const { entriesPerSecond, burstEntries, bytesPerSecond, burstBytes } = limits
  return [entriesPerSecond, burstEntries, bytesPerSecond, burstBytes].map((limit) =>
    limit === UNLIMITED ? 'unlimited' : `${limit ?? 'default'}`,
  )
}

const listing: Listing<Project> = {
  headings: ['PROJECT', 'STATE', 'RETENTION', 'CREATED', 'ENTRIES/S', 'BURST', 'BYTES/S', 'BURST'],
  cells: ({ id, enabled, retentionDays, createdAt, limits }) => {
    const state = enabled ? 'enabled' : 'disabled'
    return [id, state, `${retentionDays} days`, createdAt, ...limitCells(limits)]
  },
  empty: `There are no projects yet. Create one with: ${SLUICE} projects create`,
}
