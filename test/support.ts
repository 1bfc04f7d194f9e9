import type { Stack } from '@sluice/local'
import { setTimeout as sleep } from 'node:timers/promises'

/** Posts to /v1/logs. @param body text as it is, anything else as JSON */
export async function post(
  { apiUrl, apiKey }: Pick<Stack, 'apiUrl' | 'apiKey'>,
  body: unknown,
): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${apiUrl}/v1/logs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  })
  return { status: response.status, body: await response.json() }
}

/** Asks again until `check` does not throw; then gives what it returned. Throws its last error after `withinMs`. */
export async function eventually<T>(withinMs: number, check: () => Promise<T>): Promise<T> {
  const deadlineMs = performance.now() + withinMs
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (performance.now() > deadlineMs) throw error
      await sleep(50)
    }
  }
}
