import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { type ChunkConsumerOptions, fetchLimits } from '../src/chunk-consumer.ts'
import { chunkOf, openConsumerFixture, startTestRedis, WAIT_MS } from './support/consumer-fixture.ts'

let server: Awaited<ReturnType<typeof startTestRedis>>

beforeAll(async () => {
  server = await startTestRedis()
})

afterAll(() => server.stop())

type Fixture = ReturnType<typeof openConsumerFixture>

const idsOf = (count: number): string[] => Array.from({ length: count }, (_, n) => `chunk-${n}`)

/** A queue with chunks in it. */
async function openQueueOf(waiting: number): Promise<Fixture> {
  const fixture = openConsumerFixture(server.url)
  for (const id of idsOf(waiting)) await fixture.add(id)
  return fixture
}

/** Deliveries that the test ends. */
function heldDeliveries(): {
  readonly inHand: PromiseWithResolvers<void>[]
  readonly deliver: ChunkConsumerOptions['deliver']
} {
  const inHand: PromiseWithResolvers<void>[] = []
  return {
    inHand,
    deliver: () => {
      const delivery = Promise.withResolvers<void>()
      inHand.push(delivery)
      return delivery.promise
    },
  }
}

async function statistic({ redis }: Fixture, section: string, name: string): Promise<number> {
  const text = await redis.info(section)
  return Number(new RegExp(`${name}\\D+(\\d+)`).exec(text)?.[1])
}

/** Resolves after this many more scripts. The only scripts of an idle consumer are its fetches. */
async function untilFetched(fixture: Fixture, times: number): Promise<void> {
  const calls = (): Promise<number> => statistic(fixture, 'commandstats', 'cmdstat_evalsha:calls')
  const before = await calls()
  await vi.waitFor(async () => expect(await calls()).toBeGreaterThan(before + times), WAIT_MS)
}

it('fetches any number of waiting chunks in order, and then what arrives', async () => {
  const waiting = 5 * fetchLimits.jobsMax + 1
  const { queue, delivered, add, startConsumer } = await openQueueOf(waiting)
  startConsumer()
  await vi.waitFor(() => expect(delivered).toHaveLength(waiting), WAIT_MS)
  await add(`chunk-${waiting}`)
  await vi.waitFor(() => expect(delivered).toEqual(idsOf(waiting + 1)), WAIT_MS)
  await vi.waitFor(async () => expect(await queue.getJobCounts()).toMatchObject({ active: 0, waiting: 0 }))
})

it('has at most chunksMax chunks in hand, and fetches again when one is completed', async () => {
  const { queue, startConsumer } = await openQueueOf(10)
  const { inHand, deliver } = heldDeliveries()
  startConsumer({ chunksMax: 3, deliver })
  await vi.waitFor(() => expect(inHand).toHaveLength(3), WAIT_MS)
  expect(await queue.getJobCounts()).toMatchObject({ active: 3, waiting: 7 })
  inHand[0]?.resolve()
  await vi.waitFor(() => expect(inHand).toHaveLength(4), WAIT_MS)
  expect(await queue.getJobCounts()).toMatchObject({ active: 3, waiting: 6 })
  for (let done = 1; done < 10; done += 1) {
    await vi.waitFor(() => expect(inHand.length).toBeGreaterThan(done), WAIT_MS)
    inHand[done]?.resolve()
  }
})

it('fetches nothing while more than heldBytesMax bytes are in hand', async () => {
  const fixture = await openQueueOf(10)
  const { queue, startConsumer } = fixture
  const { inHand, deliver } = heldDeliveries()
  // The first round is one chunk, which alone exceeds the limit.
  startConsumer({ heldBytesMax: chunkOf('row\n').frame.length - 1, deliver })
  for (let done = 0; done < 10; done += 1) {
    await vi.waitFor(() => expect(inHand).toHaveLength(done + 1), WAIT_MS)
    // Several intervals of fetching.
    if (done < 3) await new Promise((resolve) => setTimeout(resolve, 10 * fetchLimits.intervalMs))
    expect(inHand).toHaveLength(done + 1)
    expect(await queue.getJobCounts()).toMatchObject({ active: 1, waiting: 9 - done })
    inHand[done]?.resolve()
  }
})

it('writes nothing to disk while nothing is waiting', async () => {
  const fixture = await openQueueOf(1)
  const { queue, delivered, startConsumer } = fixture
  startConsumer()
  await vi.waitFor(
    async () => expect(await queue.getJobCounts()).toMatchObject({ active: 0, waiting: 0 }),
    WAIT_MS,
  )
  await untilFetched(fixture, 3)
  const written = await statistic(fixture, 'persistence', 'aof_current_size')
  await untilFetched(fixture, 3)
  expect(await statistic(fixture, 'persistence', 'aof_current_size')).toBe(written)
  expect(delivered).toEqual(['chunk-0'])
})

it('closes when the chunks in hand are completed, and fetches no more', async () => {
  const { queue, completed, startConsumer } = await openQueueOf(2)
  const { inHand, deliver } = heldDeliveries()
  const consumer = startConsumer({ chunksMax: 1, deliver })
  await vi.waitFor(() => expect(inHand).toHaveLength(1), WAIT_MS)
  let closed = false
  const closing = consumer.close().then(() => (closed = true))
  await queue.getJobCounts()
  expect(closed).toBe(false)
  inHand[0]?.resolve()
  await closing
  expect(completed).toEqual(['chunk-0'])
  expect(inHand).toHaveLength(1)
  expect(await queue.getJobCounts()).toMatchObject({ active: 0, waiting: 1 })
})
