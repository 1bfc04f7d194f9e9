import { eventually } from '@sluice/harness'
import { startTestServices } from '@sluice/harness/test-installation'
import { type Installation, startInstallation } from '@sluice/local'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runSluice } from './sluice-command.ts'

let installation: Installation

beforeAll(async () => {
  installation = await startInstallation({ services: await startTestServices(), query: {} })
})
afterAll(() => installation?.stop())

/** Runs a command that must succeed, with the keys and addresses of the installation. @returns its output */
async function sluice(...args: string[]): Promise<string> {
  const { apiUrl, apiKey, queryUrl = '', readKey = '', redisUrl, prefix } = installation
  const { code, stdout, stderr } = await runSluice(args, {
    SLUICE_API_URL: apiUrl,
    SLUICE_API_KEY: apiKey,
    SLUICE_QUERY_URL: queryUrl,
    SLUICE_READ_KEY: readKey,
    REDIS_URL: redisUrl,
    SLUICE_PREFIX: prefix,
  })
  expect({ code, stderr }).toMatchObject({ code: 0 })
  return stdout
}

it('the demo is sent, found by queries, and followed through the services by the id of a request', async () => {
  const [, count = ''] = /(\d+) accepted, 0 rejected/.exec(await sluice('demo')) ?? []
  await eventually(async () =>
    expect(
      (await sluice('logs', '--json', '--limit', '1000', '--from', '1h')).trim().split('\n'),
    ).toHaveLength(Number(count)),
  )
  const [headings = ''] = (await sluice('logs', 'count', '--by', 'service', '--from', '1h')).split('\n')
  expect(new Set(headings.split(/ +/))).toEqual(new Set(['TIME', 'checkout', 'web', 'worker']))
  const query = ['level:error', 'service:checkout', '--from', '1h', '--limit', '1']
  const found = await sluice('logs', ...query, '--fields', 'request_id')
  const request = await sluice('logs', `request_id:${found.trim()}`, '--from', '1h', '--fields', 'service')
  expect(new Set(request.trim().split('\n'))).toEqual(new Set(['checkout', 'web', 'worker']))
})

it('the link of `open` begins a session of the explorer', async () => {
  const link = (await sluice('open')).trim()
  const opened = await fetch(link, { redirect: 'manual' })
  const cookie = opened.headers.get('set-cookie')?.split(';', 1)[0] ?? ''
  const session = await fetch(`${installation.queryUrl}/v1/query/session`, { headers: { cookie } })
  expect(await session.json()).toEqual({ project_id: installation.projectId, scopes: ['read', 'admin'] })
})
