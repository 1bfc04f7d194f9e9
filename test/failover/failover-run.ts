import { integer, pause, pick, seededRandom } from '@sluice/harness'
import { Journal } from '@sluice/harness/journal'
import { Load } from '@sluice/harness/load'
import { settle, type Settlement } from '@sluice/harness/settle'
import { type ClickHouseAccess, migrate, migrationsFolder, readMigrations } from '@sluice/clickhouse'
import { provisionProject, startApi, startWorker, type Supervisor, withRegistry } from '@sluice/local'
import { shardNames } from '@sluice/queue'
import type { RedisGroup } from './redis-group.ts'

export interface FailoverRunOptions {
  readonly supervisor: Supervisor
  readonly clickhouse: ClickHouseAccess
  readonly group: RedisGroup
  readonly failovers: number
  /** REDIS_REPLICAS_ACK */
  readonly replicasAck: number
  /** QUEUE_SHARDS */
  readonly shards: number
  readonly entriesPerSecond: number
  readonly seed: number
  readonly log: (line: string) => void
}

export const PREFIX = 'failover'
const WORKERS = 2
const DRAIN_DEADLINE_MS = 120_000
const REPLICA_FAULT_SHARE = 0.3
const REPLICA_FAULT_MS = { min: 200, max: 3_000 }

/** Sends entries during failovers, then compares what was acknowledged with what is stored. */
export async function runFailovers(
  options: FailoverRunOptions,
): Promise<{ journal: Journal; settlement: Settlement }> {
  const { supervisor, clickhouse, group, replicasAck, shards, entriesPerSecond, seed, log } = options
  const random = seededRandom(seed)
  await migrate(clickhouse, await readMigrations(migrationsFolder))
  const apiKey = await withRegistry({ redisUrl: group.url, prefix: PREFIX }, (registry) =>
    provisionProject(registry, 'failover'),
  )
  const environment = {
    REDIS_REPLICAS_ACK: String(replicasAck),
    QUEUE_SHARDS: String(shards),
    LOCK_DURATION_MS: '5000',
    BATCH_WAIT_MS: '100',
  }
  const app = { redisUrl: group.url, prefix: PREFIX, environment }
  const api = await startApi(supervisor, app)
  for (let i = 1; i <= WORKERS; i += 1)
    await startWorker(supervisor, { ...app, name: `worker-${i}`, clickhouse })

  const journal = new Journal(`failover-${seed}`)
  // Not the generator of the faults: how many numbers the load draws depends on the machine.
  const ofLoad = seededRandom(seed + 1)
  const load = new Load({ journal, apiUrls: [api.url], apiKey, random: ofLoad, entriesPerSecond })
  load.start()
  try {
    for (let i = 1; i <= options.failovers; i += 1) {
      if (random() < REPLICA_FAULT_SHARE) {
        const fault = pick(random, Object.values(group.replicaFaults))
        await fault(integer(random, REPLICA_FAULT_MS.min, REPLICA_FAULT_MS.max))
        await group.formed()
      }
      await pause(integer(random, 500, 1_500))
      const [name, failOver] = pick(random, Object.entries(group.faults))
      const acknowledged = journal.count('acknowledged')
      const startedMs = performance.now()
      await failOver()
      await group.formed()
      const tookMs = Math.round(performance.now() - startedMs)
      const more = journal.count('acknowledged') - acknowledged
      log(`${i} ${name}: ${tookMs} ms until all servers are in sync, ${more} entries acknowledged`)
    }
    await pause(2_000)
  } finally {
    await load.stop()
  }
  const stores = { redisUrl: group.url, shards: shardNames(PREFIX, shards), clickhouse }
  return { journal, settlement: await settle(stores, journal, { drainDeadlineMs: DRAIN_DEADLINE_MS }) }
}
