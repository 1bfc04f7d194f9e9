import { startApi, startStack, type Stack } from '@sluice/local'
import { Registry } from '@sluice/projects'
import { connectRedis } from '@sluice/runtime'
import { redisNames } from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startTestServices } from './test-services.ts'

/** So slow that it does not matter how long the test takes. */
const environment = {
  RATE_LIMIT_ENTRIES_PER_SECOND: '1',
  RATE_LIMIT_BURST_ENTRIES: '300',
  RATE_LIMIT_BYTES_PER_SECOND: '0',
}

let stack: Stack
let apiUrls: string[]
let redis: ReturnType<typeof connectRedis>
let registry: Registry

beforeAll(async () => {
  stack = await startStack({ services: await startTestServices(), api: { environment } })
  const { redisUrl, prefix, supervisor } = stack
  const second = await startApi(supervisor, { redisUrl, prefix, environment, name: 'api-2' })
  apiUrls = [stack.apiUrl, second.url]
  redis = connectRedis(redisUrl, { failFast: false })
  registry = new Registry(redis, redisNames(prefix).registryPrefix)
})

afterAll(async () => {
  redis?.disconnect()
  await stack?.stop()
})

const post = async (apiUrl: string, apiKey: string, count: number): Promise<Response> =>
  fetch(`${apiUrl}/v1/logs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ logs: Array.from({ length: count }, () => ({ level: 'info', message: 'm' })) }),
    signal: AbortSignal.timeout(10_000),
  })

// Again, with another project, where Redis was silent for the 75 ms after which each process goes its own way.
const again = { retry: 2 }

it(
  'a project without limits of its own gets those of the settings, through all processes together',
  again,
  async () => {
    const projectId = `p-${randomUUID().slice(0, 8)}`
    await registry.createProject(projectId)
    const { key } = await registry.createKey(projectId, { name: 'test', scopes: ['ingest'] })
    const statuses: number[] = []
    let last: Response | undefined
    for (let request = 0; request < 6; request += 1) {
      last = await post(apiUrls[request % 2] ?? '', key, 90)
      statuses.push(last.status)
      await last.body?.cancel()
    }
    expect(statuses).toEqual([202, 202, 202, 429, 429, 429])
    expect(last?.headers.get('ratelimit-policy')).toBe('"entries";q=1;w=1;sluice-burst=300')
    expect(last?.headers.get('ratelimit')).toMatch(/^"entries";r=\d+;t=1$/)
    expect(Number(last?.headers.get('retry-after'))).toBeGreaterThan(10)
  },
)
