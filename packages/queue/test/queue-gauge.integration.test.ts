import { IdSource } from '@sluice/rows'
import { redisServers } from '@sluice/runtime'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { QueueGauge } from '../src/queue-gauge.ts'
import { openConsumerFixture, startTestRedis, WAIT_MS } from './support/consumer-fixture.ts'

let server: Awaited<ReturnType<typeof startTestRedis>>

beforeAll(async () => {
  server = await startTestRedis()
})

afterAll(() => server.stop())

it('reads how many chunks wait and are in hand, and the age of the oldest one that a stuck worker holds', async () => {
  const { redis, names, add, startConsumer } = openConsumerFixture(server.url)
  const nowMs = Date.now()
  const idOf = (ageMs: number): string => new IdSource(() => nowMs - ageMs).next()
  const gauge = new QueueGauge({
    redis,
    servers: () => redisServers(redis),
    shards: [names],
    memoryBytes: 1_000_000_000,
    wallMs: () => nowMs,
    monotonicMs: () => 0,
  })
  for (const ageMs of [9_000, 8_000, 7_000]) await add(idOf(ageMs))
  expect(await gauge.read()).toMatchObject({ waiting: 3, inHand: 0, oldestAgeS: 9 })
  const stuck = Promise.withResolvers<void>()
  startConsumer({ chunksMax: 2, deliver: () => stuck.promise })
  await vi.waitFor(async () => expect(await gauge.read()).toMatchObject({ inHand: 2 }), WAIT_MS)
  expect(await gauge.read()).toMatchObject({ waiting: 1, oldestAgeS: 9 })
  stuck.resolve()
  await vi.waitFor(
    async () => expect(await gauge.read()).toMatchObject({ waiting: 0, inHand: 0, oldestAgeS: 0 }),
    WAIT_MS,
  )
})
