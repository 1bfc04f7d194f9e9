import { createLogger, type RedisConnection } from '@sluice/runtime'
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { HeldJobs } from '../src/held-jobs.ts'
import { JobLocks } from '../src/job-locks.ts'
import { queueNames } from '../src/queue-names.ts'

const LOCK_MS = 4_000

type Renew = () => Promise<string[]>

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

/** Holds jobs, and renews their locks with the given script. */
function renewing(count: number, renew: Renew): { jobs: HeldJobs; warn: ReturnType<typeof vi.spyOn> } {
  const jobs = new HeldJobs()
  for (let n = 0; n < count; n += 1) jobs.add({ id: `job-${n}`, token: 'a-token', bytes: 1 })
  const logger = createLogger('test', 'silent')
  const redis = {
    defineCommand: () => undefined,
    sluiceRenewLocks: renew,
    sluiceCheckStalled: async () => null,
  } as unknown as RedisConnection
  const locks = new JobLocks({ redis, names: queueNames('test'), lockDurationMs: LOCK_MS, logger }, jobs)
  onTestFinished(() => locks.stop())
  return { jobs, warn: vi.spyOn(logger, 'warn') }
}

it('renews the locks four times within their duration, many of them in one run', async () => {
  const renew = vi.fn<Renew>(async () => [])
  const { warn } = renewing(300, renew)
  await vi.advanceTimersByTimeAsync(LOCK_MS)
  expect(renew).toHaveBeenCalledTimes(4 * 2)
  expect(warn).not.toHaveBeenCalled()
})

it('sends no further renewal while Redis does not answer the last one', async () => {
  const answer = Promise.withResolvers<string[]>()
  const renew = vi.fn<Renew>(() => answer.promise)
  renewing(1, renew)
  await vi.advanceTimersByTimeAsync(3 * LOCK_MS)
  expect(renew).toHaveBeenCalledTimes(1)
  answer.resolve([])
  await vi.advanceTimersByTimeAsync(LOCK_MS)
  expect(renew.mock.calls.length).toBeGreaterThan(1)
})

it('sends nothing while no job is in hand', async () => {
  const renew = vi.fn<Renew>(async () => [])
  renewing(0, renew)
  await vi.advanceTimersByTimeAsync(LOCK_MS)
  expect(renew).not.toHaveBeenCalled()
})

it('does not report a lock as lost whose job was completed meanwhile', async () => {
  const { jobs, warn } = renewing(2, async () => {
    jobs.forget(['job-0'])
    return ['job-0']
  })
  await vi.advanceTimersByTimeAsync(LOCK_MS / 4)
  expect(warn).not.toHaveBeenCalled()
})

it('logs that Redis rejects a renewal, and not that the connection was lost', async () => {
  const renew = vi
    .fn<Renew>()
    .mockRejectedValueOnce(new Error('Connection is closed.'))
    .mockRejectedValueOnce(new Error('NOREPLICAS'))
    .mockResolvedValue([])
  const { warn } = renewing(1, renew)
  await vi.advanceTimersByTimeAsync(LOCK_MS)
  expect(warn).toHaveBeenCalledExactlyOnceWith({ err: new Error('NOREPLICAS') }, 'locks not renewed')
  expect(renew).toHaveBeenCalledTimes(4)
})
