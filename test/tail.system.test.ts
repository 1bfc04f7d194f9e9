import { pause, seededRandom } from '@sluice/harness'
import { readStored } from '@sluice/harness/audit'
import { Journal } from '@sluice/harness/journal'
import { Load } from '@sluice/harness/load'
import { isExactlyOnce, settle } from '@sluice/harness/settle'
import { TailViewer } from '@sluice/harness/tail-viewer'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'
import { shardNames } from '@sluice/queue'
import { connectRedis } from '@sluice/runtime'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ChaosReader } from './chaos/reader.ts'

/** Longer than a viewer may be behind and read with all others. */
const FAULT_MS = 7_000
const CALM_MS = 2_000
const VIEWERS = 3

let installation: Installation

beforeAll(async () => {
  installation = await startTestInstallation({ query: {} })
})
afterAll(() => installation?.stop())

async function redis(...command: [string, ...string[]]): Promise<void> {
  const connection = connectRedis(installation.redisUrl, { failFast: false })
  await connection.call(...command)
  connection.disconnect()
}

const freeze = (role: keyof Installation['processes']) => async (): Promise<void> => {
  installation.processes[role]?.kill('SIGSTOP')
  await pause(FAULT_MS)
  installation.processes[role]?.kill('SIGCONT')
}

const faults = {
  'Redis is frozen': freeze('redis'),
  'Redis holds all commands': () =>
    redis('CLIENT', 'PAUSE', String(FAULT_MS), 'ALL').then(() => pause(FAULT_MS)),
  'Redis holds writes': () => redis('CLIENT', 'PAUSE', String(FAULT_MS), 'WRITE').then(() => pause(FAULT_MS)),
  'the query process is frozen': freeze('query'),
  'the API is frozen': freeze('api'),
  'the worker is frozen': freeze('worker'),
  'ClickHouse is frozen': freeze('clickhouse'),
}

it(`viewers of a tail get each entry once, and nothing that was complete changes: ${Object.keys(faults).join(', ')}`, async () => {
  const { queryUrl: url = '', readKey = '', apiUrl, apiKey, prefix, clickhouse } = installation
  const journal = new Journal('tail')
  const reader = new ChaosReader(installation, prefix)
  const viewers = Array.from({ length: VIEWERS }, () => new TailViewer({ url, readKey }, journal))
  const load = new Load({
    journal,
    apiUrls: [apiUrl],
    apiKey,
    random: seededRandom(3),
    entriesPerSecond: 200,
  })
  load.start()
  for (const begin of Object.values(faults)) {
    await pause(CALM_MS)
    await begin()
  }
  await pause(CALM_MS)
  await load.stop()
  const stores = { ...installation, shards: shardNames(prefix, 1) }
  expect(await settle(stores, journal)).toSatisfy(isExactlyOnce)
  const stored = await readStored(clickhouse, journal.label)
  const found = await Promise.all(viewers.map((viewer) => viewer.compare(stored)))
  expect(found).toEqual(viewers.map(() => []))
  expect((await reader.compare()).wrong).toEqual([])
  expect(journal.count('acknowledged')).toBeGreaterThan(1_000)
})
