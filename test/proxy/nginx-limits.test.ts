import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { connectionLimits } from '../../apps/api/src/connections/connection-limits.ts'

const text = await readFile(new URL('../../deploy/compose/nginx.conf', import.meta.url), 'utf8')

/** The values of a time directive in nginx.conf, ms, in the order of the file. */
function times(directive: string): number[] {
  return [...text.matchAll(new RegExp(`^ +${directive} (\\d+)s;$`, 'gm'))].map(
    ([, seconds]) => Number(seconds) * 1_000,
  )
}

it('the proxy closes idle connections to the API before the API does', () => {
  const [upstreamMs] = times('keepalive_timeout')
  expect(upstreamMs).toBeLessThan(connectionLimits.idleMs)
})

it('the proxy waits longer than the API, whose responses then reach the clients', () => {
  const requestMs = connectionLimits.requestMs + connectionLimits.deadlineIntervalMs
  for (const directive of ['client_body_timeout', 'proxy_send_timeout', 'proxy_read_timeout'])
    expect(times(directive)).toEqual([expect.toSatisfy((ms: number) => ms > requestMs)])
  expect(times('client_header_timeout')).toEqual([connectionLimits.headersMs])
})

it('the proxy streams bodies of any length, and never repeats a POST that was sent', () => {
  expect(text).toMatch(/^ +client_max_body_size 0;$/m)
  expect(text).toMatch(/^ +proxy_request_buffering off;$/m)
  expect(text).toMatch(/^ +proxy_next_upstream error timeout;$/m)
})
