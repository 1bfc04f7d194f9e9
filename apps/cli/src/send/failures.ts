import { describeNetworkError } from '../errors.ts'
import type { ApiAccess } from '../service-access.ts'
import { redactUrl } from '../terminal.ts'

const KEY_HINT = '; set SLUICE_API_KEY or pass --api-key'

export function nameOfApi({ url }: ApiAccess): string {
  return `the API at ${redactUrl(url)}`
}

/** Why an attempt failed: what `fetch` threw, or what the client says. */
export function describeFailure(reason: string | undefined, cause: unknown): string {
  const text = describeNetworkError(cause)
  return text === undefined ? (reason ?? 'no reason') : `the API ${text}`
}

/** Why all requests fail, with what to do about it. */
export function describeMisconfiguration(
  api: ApiAccess,
  { status, reason }: { readonly status: number | undefined; readonly reason: string },
): string {
  const hint = status === 401 && reason.startsWith('the API key') ? KEY_HINT : ''
  return `${nameOfApi(api)} rejected the request: ${reason}${hint}`
}
