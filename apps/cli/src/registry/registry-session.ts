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
  const prefix = installationNames(access.prefix).registryPrefix
  return withRedis(access, (redis, durable) =>
    convertRegistryErrors(() => task(new Registry(redis, prefix, Date.now, durable))),
  )
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
