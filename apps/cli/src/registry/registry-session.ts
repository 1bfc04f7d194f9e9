import { Registry, RegistryError } from '@sluice/projects'
import { installationNames } from '@sluice/runtime'
import { CliError } from '../errors.ts'
import { withRedis } from '../redis-session.ts'
import type { RedisAccess } from '../service-access.ts'

/**
 * Opens the registry of projects and keys for one task, and closes it in any case.
 *
 * @throws CliError when Redis is unavailable, or the registry rejects the operation
 */
export function withRegistry<Result>(
  access: RedisAccess,
  task: (registry: Registry) => Promise<Result>,
): Promise<Result> {
  return withRedis(access, async (redis) => {
    try {
      return await task(new Registry(redis, installationNames(access.prefix).registryPrefix))
    } catch (error) {
      throw error instanceof RegistryError ? new CliError(error.message, { cause: error }) : error
    }
  })
}
