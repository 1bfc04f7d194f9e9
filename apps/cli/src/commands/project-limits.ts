import type { ProjectLimitChanges, ProjectLimitName, ProjectLimits } from '@sluice/projects'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { UsageError } from '../errors.ts'
import { integer, type RedisFlags, withRedisOptions } from './options.ts'

/** Adds `projects update`: what a project may send. */
export function addUpdateCommand(projects: Command, context: Context): void {
  withRedisOptions(projects.command('update'))
    .description("change a project's limits on traffic; takes effect within five seconds")
    .argument('<id>')
    .option('--entries-per-second <limit>', 'a number, unlimited, or default: what the API is set to', limit)
    .option('--burst-entries <limit>', 'entries at once after a pause: a number or default', limit)
    .option('--bytes-per-second <limit>', 'of decoded bodies: a number, unlimited or default', limit)
    .option('--burst-bytes <limit>', 'bytes at once after a pause: a number or default', limit)
    .action((id: string, options: UpdateOptions) => updateProject(id, options, context))
}

/** Commander would take a null for a value that is missing, so the default keeps its name up to here. */
type GivenLimit = number | 'default'

/** Commander's names of the options are the limits' own. */
type UpdateOptions = RedisFlags & { readonly [Name in ProjectLimitName]?: GivenLimit }

const NO_LIMIT = 0
const LIMIT_MAX = 1_000_000_000_000

function limit(text: string): GivenLimit {
  if (text === 'default') return text
  return text === 'unlimited' ? NO_LIMIT : integer(1, LIMIT_MAX)(text)
}

async function updateProject(id: string, options: UpdateOptions, context: Context): Promise<void> {
  const { redisUrl: _url, prefix: _prefix, ...given } = options
  const changes: ProjectLimitChanges = Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, value === 'default' ? null : value]),
  )
  if (Object.keys(given).length === 0) throw new UsageError('there is nothing to change')
  const [{ redisAccess }, { withRegistry }] = await Promise.all([
    import('../connections.ts'),
    import('../registry-session.ts'),
  ])
  const project = await withRegistry(await redisAccess(options, context), (registry) =>
    registry.setLimits(id, changes),
  )
  await context.stdout.write(`${describeLimits(project.id, project.limits ?? {})}\n`)
}

function describeLimits(id: string, limits: ProjectLimits): string {
  const { entriesPerSecond, burstEntries, bytesPerSecond, burstBytes } = limits
  return (
    `Limits of the project ${id}: ${shown(entriesPerSecond)} entries a second, ${shown(burstEntries)} at once; ` +
    `${shown(bytesPerSecond)} bytes a second, ${shown(burstBytes)} at once.`
  )
}

function shown(value: number | undefined): string {
  if (value === undefined) return 'default'
  return value === NO_LIMIT ? 'unlimited' : String(value)
}
