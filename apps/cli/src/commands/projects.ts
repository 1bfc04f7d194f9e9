import type { Command } from 'commander'
import type { Context } from '../context.ts'
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

async function loadRegistry() {
  const [{ redisAccess }, { withRegistry }] = await Promise.all([
    import('../connections.ts'),
    import('../registry-session.ts'),
  ])
  return { redisAccess, withRegistry }
}
