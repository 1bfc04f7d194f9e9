import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { painter, table } from '../terminal.ts'
import { integer, JSON_OPTION, type RedisFlags, withRedisOptions } from './options.ts'
import { addUpdateCommand } from './project-limits.ts'

const RETENTION_DAYS_MAX = 36_500

export function addProjectsCommands(program: Command, context: Context): void {
  const projects = program.command('projects').description('the projects that own keys and rows')

  withRedisOptions(projects.command('create'))
    .description('make a project')
    .argument('<id>', 'lower-case letters, digits and hyphens; cannot be changed')
    .option('--retention-days <days>', 'how long rows are kept', integer(1, RETENTION_DAYS_MAX))
    .action((id: string, options: CreateOptions) => createProject(id, options, context))

  withRedisOptions(projects.command('list'))
    .description('show the projects')
    .option(...JSON_OPTION)
    .action((options: ListOptions) => listProjects(options, context))

  withRedisOptions(projects.command('disable'))
    .description('refuse what is sent to a project, until it is enabled again; its keys and rows stay')
    .argument('<id>')
    .action((id: string, options: RedisFlags) => enableProject(id, false, options, context))

  withRedisOptions(projects.command('enable'))
    .description('take what is sent to a disabled project again')
    .argument('<id>')
    .action((id: string, options: RedisFlags) => enableProject(id, true, options, context))

  withRedisOptions(projects.command('delete'))
    .description('delete a project and its keys, for ever; its rows stay until they expire')
    .argument('<id>')
    .option('--yes', 'do not ask')
    .action((id: string, options: DeleteOptions) => deleteProject(id, options, context))

  addUpdateCommand(projects, context)
}

interface CreateOptions extends RedisFlags {
  retentionDays?: number
}

async function createProject(id: string, options: CreateOptions, context: Context): Promise<void> {
  const { redisAccess, withRegistry } = await loadRegistry()
  const project = await withRegistry(await redisAccess(options, context), (registry) =>
    registry.createProject(id, options.retentionDays),
  )
  await context.stdout.write(
    `Made the project ${project.id}, which keeps its rows for ${project.retentionDays} days.\n` +
      `A key for it: sluice keys create --project ${project.id}\n`,
  )
}

interface ListOptions extends RedisFlags {
  json?: true
}

async function listProjects(options: ListOptions, context: Context): Promise<void> {
  const { redisAccess, withRegistry } = await loadRegistry()
  const projects = await withRegistry(await redisAccess(options, context), (registry) =>
    registry.listProjects(),
  )
  if (options.json) {
    await context.stdout.write(projects.map((project) => `${JSON.stringify(project)}\n`).join(''))
  } else if (projects.length === 0) {
    await context.stderr.write('There are no projects yet; sluice projects create makes one.\n')
  } else {
    const rows = projects.map(({ id, enabled, retentionDays, createdAt }) => [
      id,
      enabled ? 'enabled' : 'disabled',
      `${retentionDays} days`,
      createdAt,
    ])
    const headings = ['PROJECT', 'STATE', 'RETENTION', 'CREATED']
    await context.stdout.write(table([headings, ...rows], painter(context.stdout.colours)))
  }
}

async function enableProject(
  id: string,
  enabled: boolean,
  options: RedisFlags,
  context: Context,
): Promise<void> {
  const { redisAccess, withRegistry } = await loadRegistry()
  await withRegistry(await redisAccess(options, context), (registry) => registry.enableProject(id, enabled))
  await context.stdout.write(
    enabled
      ? `The project ${id} is enabled; within five seconds everything takes what is sent to it.\n`
      : `The project ${id} is disabled; within five seconds everything refuses what is sent to it.\n`,
  )
}

interface DeleteOptions extends RedisFlags {
  yes?: true
}

async function deleteProject(id: string, options: DeleteOptions, context: Context): Promise<void> {
  const [{ redisAccess, withRegistry }, { confirm }] = await Promise.all([
    loadRegistry(),
    import('../confirm.ts'),
  ])
  const access = await redisAccess(options, context)
  const keys = await withRegistry(access, async (registry) => {
    if ((await registry.findProject(id)) === undefined) throw new CliError(`there is no project ${id}`)
    return registry.listKeys(id)
  })
  const consequence =
    `The project ${id} and its ${keys.length === 1 ? 'key' : `${keys.length} keys`} will be gone for ever. ` +
    'Its rows stay until they expire.'
  if (!options.yes) await confirm(context, consequence, id)
  // A person takes longer than a connection need be open.
  const keptUntil = await withRegistry(access, (registry) => registry.deleteProject(id))
  await context.stdout.write(
    `The project ${id} is deleted. Its rows stay until they expire; its id is free again on ${keptUntil.toISOString()}.\n`,
  )
}

async function loadRegistry() {
  const [{ redisAccess }, { withRegistry }] = await Promise.all([
    import('../connections.ts'),
    import('../registry-session.ts'),
  ])
  return { redisAccess, withRegistry }
}
