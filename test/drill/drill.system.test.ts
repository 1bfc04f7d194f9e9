import { connectClickHouse } from '@sluice/clickhouse'
import { eventually } from '@sluice/harness'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runDrill } from './drill.ts'

const SECONDS = 4
const DRAIN_SECONDS = 20

let installation: Installation

beforeAll(async () => {
  installation = await startTestInstallation()
})

afterAll(() => installation?.stop())

async function drill(label: string): Promise<{ passed: boolean; text: string }> {
  const lines: string[] = []
  const { apiUrl, apiKey, redisUrl, prefix, clickhouse } = installation
  const passed = await runDrill(
    { apiUrls: [apiUrl], apiKey, redisUrl, prefix, shards: 1, clickhouse },
    {
      label,
      entriesPerSecond: 200,
      seconds: SECONDS,
      drainSeconds: DRAIN_SECONDS,
      log: (line) => lines.push(line),
    },
  )
  return { passed, text: lines.join('\n') }
}

it('passes if everything that was acknowledged is stored once', async () => {
  const { passed, text } = await drill('kept')
  expect(text).toMatch(/answers: (.*, )?202 × \d+/)
  expect(text).toContain('audit: 0 lost, 0 duplicated, 0 stored though rejected, 0 never sent')
  expect(passed).toBe(true)
})

it('fails if rows are missing, and names some of them', async () => {
  const drilling = drill('emptied')
  const client = connectClickHouse(installation.clickhouse, { requestTimeoutMs: 5_000, connectionsMax: 1 })
  try {
    await eventually(async () => {
      const result = await client.query({
        query: "SELECT toUInt32(count()) AS rows FROM logs WHERE startsWith(message, 'emptied-')",
        format: 'JSONEachRow',
      })
      const [row] = await result.json<{ rows: number }>()
      expect(row?.rows).toBeGreaterThan(0)
    })
    await client.command({ query: 'TRUNCATE TABLE logs' })
  } finally {
    await client.close()
  }
  const { passed, text } = await drilling
  expect(text).toMatch(/audit: [1-9]\d* lost, 0 duplicated/)
  expect(text).toMatch(/^lost: emptied-\d+/m)
  expect(passed).toBe(false)
})
