// `npm run lab -- failover`: sends entries while replicas take over from primaries of Redis, then compares what was acknowledged with what is
// stored.
import { CommandLine, randomSeed } from '@sluice/harness/command-line'
import { seededRandom } from '@sluice/harness'
import { describeSettlement, isExactlyOnce } from '@sluice/harness/settle'
import { startServices } from '@sluice/local'
import { startClusterGroup } from './cluster-group.ts'
import { PREFIX, runFailovers } from './failover-run.ts'
import { startSentinelGroup } from './sentinel-group.ts'

const commandLine = new CommandLine(`npm run lab -- failover [options]

  --cluster       a Redis Cluster of three primaries with a replica each, instead of a primary with Sentinels
  --failovers N   default 60
  --replicas N    replicas of a primary with Sentinels; default 1
  --ack N         REDIS_REPLICAS_ACK; default the number of replicas
  --rate N        entries per second; default 500
  --seed S        repeats the faults of an earlier run; default random

Exits with status 1 if an entry was lost or duplicated.
`)
const values = commandLine.read({
  cluster: { type: 'boolean', default: false },
  failovers: { type: 'string', default: '60' },
  replicas: { type: 'string', default: '1' },
  ack: { type: 'string' },
  rate: { type: 'string', default: '500' },
  seed: { type: 'string', default: randomSeed() },
})
const replicas = commandLine.positive('replicas', values.replicas)
const seed = commandLine.nonNegativeInteger('seed', values.seed)
const replicasAck = values.ack === undefined ? replicas : Number(values.ack)
const SHARDS = 4
const log = (line: string): void => void process.stdout.write(`${line}\n`)

log(`seed ${seed}, ${replicas} replicas, REDIS_REPLICAS_ACK=${replicasAck}`)
// Its Redis is not used.
const services = await startServices()
try {
  const { supervisor } = services
  const { journal, settlement } = await runFailovers({
    supervisor,
    group: values.cluster
      ? await startClusterGroup(supervisor, seededRandom(seed + 2), PREFIX)
      : await startSentinelGroup(supervisor, replicas),
    clickhouse: { ...services.clickhouse, database: 'failover' },
    failovers: commandLine.positive('failovers', values.failovers),
    replicasAck,
    shards: values.cluster ? SHARDS : 1,
    entriesPerSecond: commandLine.positive('rate', values.rate),
    seed,
    log,
  })
  log(`\n${describeSettlement(journal, settlement)}`)
  process.exitCode = isExactlyOnce(settlement) ? 0 : 1
} finally {
  await services.stop({ force: true })
}
