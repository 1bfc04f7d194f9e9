import { type ApiKeyRecord, Registry, RegistryError } from '@sluice/projects'
import { installationNames } from '@sluice/runtime'
import type { ClickHouseAccess } from '@sluice/clickhouse'
import type { Context } from './context.ts'
import { CliError } from './errors.ts'
import { SLUICE } from './options.ts'
import { withRedis } from './redis-session.ts'
import { hasRegistry, redisAccess, type RedisFlags } from './service-access.ts'
import { printNotice } from './terminal.ts'

/**
 * Opens the registry of projects and keys for one task, and closes it in any case.
 *
 * @throws CliError when Redis is unavailable, or the registry rejects the operation
 */
export async function withRegistry<Result>(
  flags: RedisFlags,
  context: Context,
  task: (registry: Registry) => Promise<Result>,
): Promise<Result> {
  const access = await redisAccess(flags, context)
  const prefix = installationNames(access.prefix).registryPrefix
  return withRedis(access, (redis, durable) =>
    convertRegistryErrors(() => task(new Registry(redis, prefix, Date.now, durable))),
  )
}

/** The keys of a project, including revoked ones. @throws CliError when there is no such project */
export async function keysOf(registry: Registry, projectId: string): Promise<ApiKeyRecord[]> {
  if ((await registry.projects.find(projectId)) === undefined)
    throw new CliError(`there is no project ${projectId}`)
  return registry.keys.list(projectId)
}

/** @throws CliError when the registry rejects the operation */
export async function convertRegistryErrors<Result>(
  operation: () => Result | Promise<Result>,
): Promise<Result> {
  try {
    return await operation()
  } catch (error) {
    throw error instanceof RegistryError ? new CliError(error.message, { cause: error }) : error
  }
}

/**
 * Reports a project id that is probably misspelt. Call it for a project without rows in ClickHouse: those of a deleted
 * project can still be read.
 *
 * Redis has the projects. Users who only have access to ClickHouse get a notice instead.
 *
 * @throws CliError when there is no such project
 */
export async function requireProject(
  projectId: string,
  { clickhouse, flags }: { clickhouse: ClickHouseAccess; flags: RedisFlags },
  context: Context,
): Promise<void> {
  const notice = (reason: string): Promise<void> =>
    printNotice(context.stderr, `it is unknown whether the project ${projectId} exists: ${reason}`)
  if (!(await hasRegistry(flags, clickhouse, context)))
    return notice('set REDIS_URL or pass --redis-url to check it')
  let project: object | undefined
  try {
    project = await withRegistry(flags, context, (registry) => registry.projects.find(projectId))
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return notice(error.message)
  }
  if (project === undefined) {
    throw new CliError(`there is no project ${projectId}; \`${SLUICE} projects list\` lists the projects`)
  }
}
