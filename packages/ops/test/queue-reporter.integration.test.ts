import { connectRedis, createLogger, installationNames, type RedisConnection } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { Heartbeat } from '../src/heartbeat.ts'
import { Metrics } from '../src/metrics.ts'
import { exportQueues, QueueReporter } from '../src/queue-reporter.ts'
import { useTestRedis } from '../../queue/test/support/consumer-fixture.ts'

const server = useTestRedis()
let redis: RedisConnection
let prefix: string
let nowMs: number
let isReadable: boolean

beforeEach(() => {
  redis = connectRedis(server.url, { failFast: false })
  onTestFinished(() => redis.disconnect())
  prefix = `reporter-${randomUUID()}`
  nowMs = 0
  isReadable = true
})

const read = async () => {
  if (!isReadable) throw new Error('no answer')
  const totals = { added: 100, inserted: 80, deadLettered: 3, removed: 2 }
  const shard = { shard: 0, waiting: 4, delayed: 1, inHand: 2, failed: 3, oldestAgeS: 7, totals }
  const memory = { server: 'redis:1', usedBytes: 300, limitBytes: 1_000 }
  const sums = { waiting: 5, inHand: 2, failed: 3, oldestAgeS: 7, memoryPercent: 30 }
  return { ...sums, shards: [shard], servers: [memory] }
}

const readiness = () => ({ ready: true, reasons: [] })

/** A process, whose heartbeat is to be called by the test. */
class Process extends QueueReporter {
  readonly check: () => Promise<void>

  constructor(processId: string) {
    const [monotonicMs, logger] = [() => nowMs, createLogger('test', 'silent')]
    super({ gauge: { read }, monotonicMs, logger })
    const common = { role: 'api', host: 'web-1', pid: 7, version: '1.2.3', monotonicMs, logger } as const
    const heartbeat = new Heartbeat({ ...common, redis, prefix, processId, readiness, queues: this })
    this.check = () => heartbeat.check()
  }
}

const leaseKey = (): string => installationNames(prefix).reporterKey

/** The lines of the metrics of a reporter. */
const pageOf = async (reporter: QueueReporter): Promise<string[]> => {
  const metrics = new Metrics({ app: 'test', version: '1' })
  exportQueues(metrics, reporter)
  return (await metrics.page.text()).split('\n').filter((line) => /^sluice_(queue|rows|redis)/.test(line))
}

it('one process reports, until its lease ends, or until it cannot read', async () => {
  const [first, second] = [new Process('first'), new Process('second')]
  await first.check()
  await second.check()
  expect([first.report, second.report]).toEqual([expect.anything(), undefined])
  expect(await redis.pttl(leaseKey())).toBeGreaterThan(14_000)
  await redis.del(leaseKey())
  await second.check()
  await first.check()
  expect([first.report, second.report]).toEqual([undefined, expect.anything()])
  isReadable = false
  await second.check()
  await second.check()
  isReadable = true
  await first.check()
  expect([first.report, second.report]).toEqual([expect.anything(), undefined])
})

it('a process that does not reach Redis stops reporting before another one begins', async () => {
  const reporter = new Process('first')
  await reporter.check()
  isReadable = false
  nowMs = 14_999
  await reporter.check()
  expect(reporter.report).toBeDefined()
  nowMs = 15_000
  expect(reporter.report).toBeUndefined()
})

it('a process keeps reporting while Redis rejects writes, and another one does not begin', async () => {
  const [first, second] = [new Process('first'), new Process('second')]
  await first.check()
  await redis.config('SET', 'min-replicas-to-write', '1')
  try {
    nowMs = 10_000
    await first.check()
    await second.check()
    nowMs = 20_000
    expect(first.report).toBeDefined()
    expect(second.report).toBeUndefined()
  } finally {
    await redis.config('SET', 'min-replicas-to-write', '0')
  }
})

it('its metrics are the state of each shard and each server, and nothing without the lease', async () => {
  const [first, second] = [new Process('first'), new Process('second')]
  await first.check()
  await second.check()
  expect(await pageOf(second)).toEqual([])
  expect(await pageOf(first)).toEqual([
    'sluice_queue_chunks{shard="0",state="waiting"} 4',
    'sluice_queue_chunks{shard="0",state="delayed"} 1',
    'sluice_queue_chunks{shard="0",state="in_hand"} 2',
    'sluice_queue_chunks{shard="0",state="failed"} 3',
    'sluice_queue_oldest_age_seconds{shard="0"} 7',
    'sluice_queue_rows{shard="0"} 15',
    'sluice_rows_total{shard="0",stage="added"} 100',
    'sluice_rows_total{shard="0",stage="inserted"} 80',
    'sluice_rows_total{shard="0",stage="dead_lettered"} 3',
    'sluice_rows_total{shard="0",stage="removed"} 2',
    'sluice_redis_memory_used_bytes{server="redis:1"} 300',
    'sluice_redis_memory_limit_bytes{server="redis:1"} 1000',
    'sluice_redis_memory_headroom_seconds{server="redis:1"} +Inf',
  ])
})
