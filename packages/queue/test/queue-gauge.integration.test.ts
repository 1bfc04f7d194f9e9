import { IdSource } from '@sluice/rows'
import { redisServers } from '@sluice/runtime'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { QueueGauge } from '../src/queue-gauge.ts'
import { ConsumerFixture, fetchIds, startTestRedis } from './support/consumer-fixture.ts'

let server: Awaited<ReturnType<typeof startTestRedis>>

beforeAll(async () => {
  server = await startTestRedis()
})

afterAll(() => server.stop())

it('reads how many chunks wait and are in hand, and the age of the oldest one that a stuck worker holds', async () => {
  const fixture = new ConsumerFixture(server.url)
  const { redis, names } = fixture
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
  for (const ageMs of [9_000, 8_000, 7_000]) await fixture.add(idOf(ageMs))
  expect(await gauge.read()).toMatchObject({ waiting: 3, inHand: 0, oldestAgeS: 9 })
  const stuck = fixture.openConsumer()
  const members = await fetchIds(stuck, 2)
  expect(await gauge.read()).toMatchObject({ waiting: 1, inHand: 2, oldestAgeS: 9 })
  await stuck.finish({ id: 'batch', members }, undefined)
  expect(await gauge.read()).toMatchObject({ waiting: 1, inHand: 0, oldestAgeS: 7 })
})
