import { type LogsResponse, postLogs } from '@sluice/harness'
import { startTestInstallation } from '@sluice/harness/test-installation'
import { type Installation, provisionProject, startApi, withRegistry } from '@sluice/local'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'

/** Slow enough that the duration of the test does not matter. */
const environment = {
  RATE_LIMIT_ENTRIES_PER_SECOND: '1',
  RATE_LIMIT_BYTES_PER_SECOND: '0',
}

let installation: Installation
let apiUrls: string[]

beforeAll(async () => {
  installation = await startTestInstallation({ api: { environment } })
  const { redisUrl, prefix, supervisor } = installation
  const second = await startApi(supervisor, { redisUrl, prefix, environment, name: 'api-2' })
  apiUrls = [installation.apiUrl, second.url]
})

afterAll(async () => {
  await installation?.stop()
})

const logs = Array.from({ length: 30 }, () => ({ level: 'info', message: 'm' }))

// If Redis does not reply within 75 ms, each process limits alone. The test is then repeated with another project.
const again = { retry: 2 }

it('a project without limits gets the limits of the settings, which all processes share', again, async () => {
  const projectId = `p-${randomUUID().slice(0, 8)}`
  const apiKey = await withRegistry(installation, (registry) => provisionProject(registry, projectId))
  const statuses: number[] = []
  let last: LogsResponse | undefined
  for (let request = 0; request < 6; request += 1) {
    last = await postLogs({ apiUrl: apiUrls[request % 2] ?? '', apiKey }, { logs })
    statuses.push(last.status)
  }
  expect(statuses).toEqual([202, 202, 202, 429, 429, 429])
  expect(last?.headers.get('ratelimit-policy')).toBe('"entries";q=1;w=1;sluice-burst=100')
  expect(last?.headers.get('ratelimit')).toMatch(/^"entries";r=\d+;t=1$/)
  expect(Number(last?.headers.get('retry-after'))).toBeGreaterThan(10)
})
