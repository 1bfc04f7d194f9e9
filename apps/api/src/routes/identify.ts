import { logsPaths } from '../http-contract.ts'
import { hasIdentity, identifyRequest, type RequestIdentity } from '../idempotency/idempotency-record.ts'
import type { Turns } from '../turns.ts'
import type { IntakeRequest } from './request-state.ts'

/** Hashing this much takes about 0.1 ms: less than a turn costs. */
const HASHED_AT_ONCE_BYTES_MAX = 64 * 1024

/**
 * The identity of a request, for which its body is hashed. That of 5 MiB takes 8 ms, so large bodies take turns: dozens may arrive in the same
 * moment.
 *
 * @param body decoded
 * @returns not a promise for a small body, nor for a request without an identity
 * @throws Problem `invalid_idempotency_key`, or rejects with it
 */
export function identify(
  request: Pick<IntakeRequest, 'headers' | 'project' | 'routeOptions' | 'url'>,
  body: Buffer,
  turns: Turns,
): RequestIdentity | undefined | Promise<RequestIdentity | undefined> {
  const { headers } = request
  if (!hasIdentity(headers)) return undefined
  const { project, routeOptions, url } = request
  // The paths of entries are one resource.
  const target = logsPaths.includes(routeOptions.url ?? '') ? '' : url
  const pause = body.length > HASHED_AT_ONCE_BYTES_MAX ? turns.begin(project?.id ?? '').pause() : undefined
  return pause === undefined
    ? identifyRequest(headers, body, target)
    : pause.then(() => identifyRequest(headers, body, target))
}
