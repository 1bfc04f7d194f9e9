import { IdSource } from '@sluice/rows'
import { redisServers } from '@sluice/runtime'
import { expect, inject, it } from 'vitest'
import { QueueGauge } from '../src/queue-gauge.ts'
import { ConsumerFixture, fetchIds } from '../../queue/test/support/consumer-fixture.ts'

it('reads how many chunks wait, are held and failed, and the age of the oldest one, also if a stuck worker holds it', async () => {
  const fixture = new ConsumerFixture(inject('services').redisUrl)
  const { redis, names } = fixture
  const nowMs = Date.now()
  const idOf = (ageMs: number): string => new IdSource(() => nowMs - ageMs).next()
  const gauge = new QueueGauge({
    redis,
    servers: () => redisServers(redis),
    shards: { names: [names], refresh: () => Promise.resolve() },
    memoryBytes: 1_000_000_000,
    wallMs: () => nowMs,
    monotonicMs: () => 0,
  })
  const ids = [9_000, 8_000, 7_000, 6_000].map(idOf)
  for (const id of ids) await fixture.add(id)
  expect(await gauge.read()).toMatchObject({ waiting: 4, inHand: 0, oldestAgeS: 9, failed: 0 })

  const stuck = fixture.openConsumer()
  expect(await fetchIds(stuck, 2)).toEqual(ids.slice(0, 2))
  expect(await gauge.read()).toMatchObject({ waiting: 2, inHand: 2, oldestAgeS: 9 })

  await stuck.fail(ids[0] ?? '', new Error('damaged'))
  expect(await gauge.read()).toMatchObject({ waiting: 2, inHand: 1, oldestAgeS: 8, failed: 1 })

  // It is not the next one to be fetched.
  await stuck.requeue([ids[1] ?? ''], 'back')
  expect(await gauge.read()).toMatchObject({ waiting: 3, inHand: 0, oldestAgeS: 7 })
})
