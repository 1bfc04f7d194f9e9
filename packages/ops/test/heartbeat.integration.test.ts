import {
  connectRedis,
  createLogger,
  installationNames,
  type Readiness,
  type RedisConnection,
} from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { Heartbeat, heartbeatLimits, type HeartbeatOptions, readProcesses } from '../src/heartbeat.ts'
import { useTestRedis } from '../../queue/test/support/consumer-fixture.ts'

const server = useTestRedis()
let redis: RedisConnection
let prefix: string
let nowMs: number

beforeEach(() => {
  redis = connectRedis(server.url, { failFast: false })
  onTestFinished(() => redis.disconnect())
  prefix = `heartbeat-${randomUUID()}`
  nowMs = 0
})

const ready = (): Readiness => ({ ready: true, reasons: [] })

function heartbeatOf(processId: string, options: Partial<HeartbeatOptions> = {}): Heartbeat {
  return new Heartbeat({
    redis,
    prefix,
    processId,
    role: 'api',
    host: 'web-1',
    pid: 7,
    version: '1.2.3',
    readiness: ready,
    queues: { canRead: true, report: undefined, update: async () => undefined },
    monotonicMs: () => nowMs,
    logger: createLogger('test', 'silent'),
    ...options,
  })
}

/** Makes the reports of all processes older. */
async function age(ms: number): Promise<void> {
  const { processTimesKey } = installationNames(prefix)
  for (const id of await redis.zrange(processTimesKey, '0', '-1'))
    await redis.zincrby(processTimesKey, -ms, id)
}

const idsOf = async (): Promise<string[]> => (await readProcesses(redis, prefix)).map(({ id }) => id)

it('a process is reported with its work, API processes first, until it stops', async () => {
  const lag = { chunks: 3, meanS: 0.5, maxS: 1.5 }
  const worker = heartbeatOf('w', { role: 'worker', work: () => ({ chunksHeld: 4, lag }) })
  const api = heartbeatOf('a')
  nowMs = 65_000
  await worker.check()
  await api.check()
  const common = {
    host: 'web-1',
    pid: 7,
    version: '1.2.3',
    uptimeS: 65,
    ageS: expect.any(Number),
    isSilent: false,
  }
  expect(await readProcesses(redis, prefix)).toEqual([
    { id: 'a', role: 'api', ...common },
    { id: 'w', role: 'worker', ...common, chunksHeld: 4, lag },
  ])
  await worker.leave()
  expect(await idsOf()).toEqual(['a'])
})

it('a process that is not ready is reported with the first reason, without passwords', async () => {
  const reasons = ['no answer of redis://me:secret@host', 'another']
  await heartbeatOf('a', { readiness: () => ({ ready: false, reasons }) }).check()
  expect((await readProcesses(redis, prefix))[0]?.notReady).toBe('no answer of redis://host')
  expect(JSON.stringify(await redis.hgetall(installationNames(prefix).processesKey))).not.toContain('secret')
})

it('a process that was killed is silent, disappears later, and the next report of another one removes its record', async () => {
  await heartbeatOf('killed').check()
  const { processTimesKey, processesKey } = installationNames(prefix)
  for (const key of [processTimesKey, processesKey]) expect(await redis.pttl(key)).toBeGreaterThan(0)
  await age(10_000)
  expect((await readProcesses(redis, prefix))[0]).toMatchObject({ uptimeS: 10, isSilent: false })
  await age(35_000)
  expect((await readProcesses(redis, prefix))[0]).toMatchObject({ id: 'killed', uptimeS: 45, isSilent: true })
  await age(heartbeatLimits.keptMs)
  expect(await idsOf()).toEqual([])
  await heartbeatOf('other').check()
  expect(await redis.hkeys(processesKey)).toEqual(['other'])
})

it('the number of processes is limited, and the known ones are still reported', async () => {
  for (let n = 0; n <= heartbeatLimits.processesMax; n += 1) await heartbeatOf(`p-${n}`).check()
  expect(await idsOf()).toHaveLength(heartbeatLimits.processesMax)
  expect(await idsOf()).not.toContain(`p-${heartbeatLimits.processesMax}`)
  await heartbeatOf('p-0', { pid: 8 }).check()
  const { processTimesKey } = installationNames(prefix)
  await redis.zincrby(processTimesKey, -heartbeatLimits.silenceMaxMs - 1, 'p-1')
  await heartbeatOf('instead').check()
  expect(await idsOf()).toContain('instead')
  expect(await idsOf()).not.toContain('p-1')
  expect((await readProcesses(redis, prefix)).find(({ id }) => id === 'p-0')?.pid).toBe(8)
})

it('a record in another form is ignored', async () => {
  await heartbeatOf('a').check()
  for (const record of ['', '{', 'null', '{"role":"proxy"}', '{"role":"api","host":1}']) {
    await redis.hset(installationNames(prefix).processesKey, 'a', record)
    expect(await idsOf()).toEqual([])
  }
})

it('processes are reported while Redis is above its maxmemory', async () => {
  await redis.config('SET', 'maxmemory', '1')
  onTestFinished(async () => {
    await redis.config('SET', 'maxmemory', '0')
  })
  await heartbeatOf('a').check()
  expect(await idsOf()).toEqual(['a'])
})

it('without a Redis that replies, neither a report nor the stop fails, nor waits for it', async () => {
  for (const failFast of [true, false]) {
    const lost = connectRedis('redis://127.0.0.1:1', { failFast })
    lost.on('error', () => undefined)
    onTestFinished(() => lost.disconnect())
    const heartbeat = heartbeatOf('a', { redis: lost })
    if (failFast) await heartbeat.check()
    await expect(heartbeat.leave()).resolves.toBeUndefined()
  }
})
