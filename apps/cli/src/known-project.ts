import type { ClickHouseAccess } from '@sluice/clickhouse'
import type { Context } from './context.ts'
import { CliError } from './errors.ts'
import { SLUICE } from './program-name.ts'
import { withRegistry } from './registry/registry-session.ts'
import { type RedisFlags, registryAccess } from './service-access.ts'
import { printNotice } from './terminal.ts'

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
  const access = await registryAccess(flags, clickhouse, context)
  if (access === undefined) return notice('set REDIS_URL or pass --redis-url to check it')
  let project: object | undefined
  try {
    project = await withRegistry(access, (registry) => registry.projects.find(projectId))
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return notice(error.message)
  }
  if (project === undefined) {
    throw new CliError(`there is no project ${projectId}; \`${SLUICE} projects list\` lists the projects`)
  }
}
