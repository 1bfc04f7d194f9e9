import { startStack, type Stack } from '@sluice/local'
import { Registry } from '@sluice/projects'
import { connectRedis } from '@sluice/runtime'
import { redisNames } from '@sluice/schema'
import { within } from '../chaos/pause.ts'
import type { FuzzKeys } from './fuzz-request.ts'
import { sentinelProject } from './sentinels.ts'

/** The projects of requests whose answers are all read, and of the others. */
export const exactProject = 'fuzz-exact'
export const tornProject = 'fuzz-torn'
const orphanProject = 'fuzz-orphan'

/** What is fuzzed: everything real, on this machine, with nothing in it. */
export interface Target {
  readonly stack: Stack
  readonly port: number
  readonly keys: FuzzKeys
  readonly sentinelKey: string
}

const environment = {
  // As short as it may be, so that records go while the run is still on.
  IDEMPOTENCY_WINDOW_SECONDS: '60',
  // What is looked for is what requests do to each other. On a machine that is busy with something else, the process
  // would refuse some for being late.
  EVENT_LOOP_DELAY_HIGH_MS: '60000',
  EVENT_LOOP_DELAY_LOW_MS: '30000',
}

const REGISTER_DEADLINE_MS = 10_000

export async function startTarget(): Promise<Target> {
  const stack = await startStack({ prefix: 'fuzz', projectId: exactProject, api: { environment } })
  try {
    const keys = await within(REGISTER_DEADLINE_MS, 'making the keys', makeKeys(stack))
    return { stack, port: Number(new URL(stack.apiUrl).port), ...keys }
  } catch (error) {
    await stack.stop({ force: true })
    throw error
  }
}

async function makeKeys({
  redisUrl,
  prefix,
  apiKey,
}: Stack): Promise<{ readonly keys: FuzzKeys; readonly sentinelKey: string }> {
  const redis = connectRedis(redisUrl, { failFast: false })
  redis.on('error', () => undefined)
  try {
    const { registryPrefix } = redisNames(prefix)
    const registry = new Registry(redis, registryPrefix)
    for (const project of [tornProject, orphanProject, sentinelProject]) await registry.createProject(project)
    const { key: torn } = await registry.createKey(tornProject)
    const { key: orphan } = await registry.createKey(orphanProject)
    const { key: reader } = await registry.createKey(tornProject, { scopes: ['read'] })
    const { key: revoked, record } = await registry.createKey(tornProject)
    const { key: sentinelKey } = await registry.createKey(sentinelProject)
    await registry.revokeKey(record.id)
    await redis.del(`${registryPrefix}:project:${orphanProject}`)
    return { keys: { exact: apiKey, torn, orphan, reader, revoked }, sentinelKey }
  } finally {
    redis.disconnect()
  }
}
