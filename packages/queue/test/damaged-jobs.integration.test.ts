import { Worker } from 'bullmq'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import type { Chunk } from '../src/chunk.ts'
import { openConsumerFixture, startTestRedis, WAIT_MS } from './support/consumer-fixture.ts'

let server: Awaited<ReturnType<typeof startTestRedis>>

beforeAll(async () => {
  server = await startTestRedis()
})

afterAll(async () => server.stop())

it.each([
  ['null', null],
  ['without a frame', { v: 1 }],
  ['with a frame that is not a text', { v: 1, rows: 1, bytes: 4, frame: 5 }],
])('a job whose data is %s becomes a failed job, and the consumer continues', async (_what, data) => {
  const { queue, delivered, errors, add, startConsumer } = openConsumerFixture(server.url)
  await add('damaged', data as Chunk)
  await add('next')
  startConsumer({ heldBytesMax: 100 })
  await vi.waitFor(() => expect(delivered).toEqual(['next']), WAIT_MS)
  await vi.waitFor(
    async () => expect(await queue.getJobCounts()).toMatchObject({ active: 0, waiting: 0, failed: 1 }),
    WAIT_MS,
  )
  expect(errors).toHaveBeenCalledWith(
    expect.objectContaining({ chunkId: 'damaged' }),
    'chunk moved to the failed jobs',
  )
})

it('sends no further renewal of locks while Redis does not answer the last one', async () => {
  const { add, startConsumer } = openConsumerFixture(server.url)
  const answer = Promise.withResolvers<string[]>()
  const extend = vi.spyOn(Worker.prototype, 'extendJobLocks').mockReturnValue(answer.promise)
  onTestFinished(() => extend.mockRestore())
  const delivery = Promise.withResolvers<void>()
  await add('one')
  startConsumer({ lockDurationMs: 400, deliver: () => delivery.promise })
  await vi.waitFor(() => expect(extend).toHaveBeenCalled(), WAIT_MS)
  await sleep(500)
  expect(extend).toHaveBeenCalledTimes(1)
  answer.resolve([])
  await vi.waitFor(() => expect(extend.mock.calls.length).toBeGreaterThan(1), WAIT_MS)
  delivery.resolve()
})
