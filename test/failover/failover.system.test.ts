import { isExactlyOnce } from '@sluice/harness/settle'
import { Supervisor } from '@sluice/local'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { runFailovers } from './failover-run.ts'
import { startSentinelGroup } from './sentinel-group.ts'

let supervisor: Supervisor

beforeAll(async () => {
  supervisor = new Supervisor()
})

afterAll(() => supervisor?.stop({ force: true }))

// The long run is `npm run lab -- failover`.
it('loses and duplicates nothing when the primary of Redis is replaced', async () => {
  const { journal, settlement } = await runFailovers({
    supervisor,
    clickhouse: { ...inject('services').clickhouse, database: `failover_${randomUUID().slice(0, 8)}` },
    group: await startSentinelGroup(supervisor, 1),
    failovers: 3,
    replicasAck: 1,
    shards: 1,
    entriesPerSecond: 300,
    seed: 15,
    log: () => undefined,
  })
  expect(settlement).toSatisfy(isExactlyOnce)
  expect(journal.count('acknowledged')).toBeGreaterThan(500)
}, 180_000)
