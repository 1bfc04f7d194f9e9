import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { startRedis, Supervisor } from '@sluice/local'
import { Queue } from 'bullmq'
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { workerLimits } from '../src/limits.ts'
import { PacedWorker } from '../src/paced-worker.ts'

let supervisor: Supervisor
let redis: RedisConnection
let queues = 0

beforeAll(async () => {
  supervisor = await Supervisor.open()
  redis = connectRedis((await startRedis(supervisor)).url, { failFast: false })
  redis.on('error', () => undefined)
})

afterAll(async () => {
  redis.disconnect()
  await supervisor.stop({ force: true })
})

/** A queue of the test's own, and a worker of it that runs. */
async function start(options: {
  readonly waiting: number
  readonly concurrency?: number
  readonly process: (n: number) => Promise<void>
}): Promise<{ readonly queue: Queue<number>; readonly worker: PacedWorker<number> }> {
  queues += 1
  const name = `queue-${queues}`
  const queue = new Queue<number>(name, { connection: redis })
  onTestFinished(() => queue.close())
  await queue.addBulk(
    Array.from({ length: options.waiting }, (_, n) => ({
      name: 'n',
      data: n,
      opts: { removeOnComplete: true },
    })),
  )
  const worker = new PacedWorker<number>(name, ({ data }) => options.process(data), {
    connection: redis,
    concurrency: options.concurrency ?? 1_000,
  })
  onTestFinished(() => worker.close())
  return { queue, worker }
}

async function figure(section: string, name: string): Promise<number> {
  const text = await redis.info(section)
  return Number(new RegExp(`${name}\\D+(\\d+)`).exec(text)?.[1])
}

/** Resolves when scripts ran so often more: an idle worker runs none but its fetches. */
async function untilFetched(times: number): Promise<void> {
  const before = await figure('commandstats', 'cmdstat_evalsha:calls')
  await vi.waitFor(
    async () => expect(await figure('commandstats', 'cmdstat_evalsha:calls')).toBeGreaterThan(before + times),
    10_000,
  )
}

it('takes what has gathered in its order, however many, and what comes later', async () => {
  const taken: number[] = []
  const waiting = 5 * workerLimits.fetch.jobsMax + 1
  const { queue } = await start({ waiting, process: async (n) => void taken.push(n) })
  await vi.waitFor(() => expect(taken).toHaveLength(waiting), 10_000)
  await queue.add('n', waiting, { removeOnComplete: true })
  await vi.waitFor(() => expect(taken).toEqual(Array.from({ length: waiting + 1 }, (_, n) => n)), 10_000)
  await vi.waitFor(async () => expect(await queue.getJobCounts()).toMatchObject({ active: 0, waiting: 0 }))
})

it('has no more in hand than it may, and fetches again when one is done with', async () => {
  const inHand: PromiseWithResolvers<void>[] = []
  const { queue } = await start({
    waiting: 10,
    concurrency: 3,
    process: () => {
      const job = Promise.withResolvers<void>()
      inHand.push(job)
      return job.promise
    },
  })
  await vi.waitFor(() => expect(inHand).toHaveLength(3), 10_000)
  expect(await queue.getJobCounts()).toMatchObject({ active: 3, waiting: 7 })
  inHand[0]?.resolve()
  await vi.waitFor(() => expect(inHand).toHaveLength(4), 10_000)
  expect(await queue.getJobCounts()).toMatchObject({ active: 3, waiting: 6 })
  for (let done = 1; done < 10; done += 1) {
    await vi.waitFor(() => expect(inHand.length).toBeGreaterThan(done), 10_000)
    inHand[done]?.resolve()
  }
})

it('writes nothing to disk while there is nothing to fetch', async () => {
  const process = vi.fn<() => Promise<void>>(async () => undefined)
  const { queue } = await start({ waiting: 1, process })
  await vi.waitFor(
    async () => expect(await queue.getJobCounts()).toMatchObject({ active: 0, waiting: 0 }),
    10_000,
  )
  await untilFetched(3)
  const written = await figure('persistence', 'aof_current_size')
  await untilFetched(3)
  expect(await figure('persistence', 'aof_current_size')).toBe(written)
  expect(process).toHaveBeenCalledOnce()
})

it('closes when what is in hand is done with, and fetches nothing more', async () => {
  const job = Promise.withResolvers<void>()
  const process = vi.fn<() => Promise<void>>(() => job.promise)
  const { queue, worker } = await start({ waiting: 2, concurrency: 1, process })
  await vi.waitFor(() => expect(process).toHaveBeenCalledOnce(), 10_000)
  let closed = false
  const closing = worker.close().then(() => (closed = true))
  await queue.getJobCounts()
  expect(closed).toBe(false)
  job.resolve()
  await closing
  expect(process).toHaveBeenCalledOnce()
  expect(await queue.getJobCounts()).toMatchObject({ active: 0, waiting: 1 })
})
