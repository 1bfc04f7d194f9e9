import { generateApiKey } from '@sluice/projects'
import { QueueUnavailableError } from '@sluice/queue'
import { limits } from '@sluice/schema'
import type { ProblemCode } from '../../src/problems.ts'
import type { Body, TestApi } from './test-api.ts'

/** How a request differs from a valid one. */
export interface Change {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Body
}

/** The key as every protocol reads it. */
export const keyHeaders = (key: string): Record<string, string> => ({
  authorization: `Bearer ${key}`,
  'dd-api-key': key,
})

/** Makes the API reject a request with each of these problems, whatever its protocol: by a change of the API, or of the request. */
export const rejections: Readonly<Partial<Record<ProblemCode, (api: TestApi) => Change | Promise<Change>>>> =
  {
    invalid_encoding: () => ({ headers: { 'content-encoding': 'gzip' } }),
    unsupported_encoding: () => ({ headers: { 'content-encoding': 'lz4' } }),
    invalid_idempotency_key: () => ({ headers: { 'idempotency-key': 'a b' } }),
    unauthorized: () => ({ headers: keyHeaders(generateApiKey()) }),
    forbidden: ({ registry }) => ({ headers: keyHeaders(registry.addKey({ scopes: ['read'] }).key) }),
    project_not_found: ({ registry }) => {
      registry.addProject({ enabled: false })
      return {}
    },
    body_too_large: () => ({ body: ' '.repeat(limits.bodyBytesMax + 1) }),
    rate_limited: ({ registry }) => {
      registry.addProject({ limits: { entriesPerSecond: 1, burstEntries: 1 } })
      return {}
    },
    internal_error: failing(new TypeError('unexpected')),
    overloaded: async ({ signals }) => {
      await signals.set('queue_depth', 90)
      return {}
    },
    queue_unavailable: failing(new QueueUnavailableError('no answer')),
  }

function failing(reason: Error): (api: TestApi) => Change {
  return ({ queue }) => {
    queue.add = () => Promise.reject(reason)
    return {}
  }
}
