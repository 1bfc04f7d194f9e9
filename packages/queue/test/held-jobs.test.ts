import { createLogger, type RedisConnection } from '@sluice/runtime'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { HeldJobs, keepLocks } from '../src/held-jobs.ts'
import { queueNames } from '../src/queue-names.ts'

const job = (id: string, token = 'a-token') => ({ id, token })

it('counts each job once', () => {
  const jobs = new HeldJobs()
  expect(jobs.add(job('a'))).toBe(true)
  expect(jobs.add(job('b'))).toBe(true)
  expect(jobs.add(job('a', 'another-token'))).toBe(false)
  expect(jobs.size).toBe(2)
  jobs.forget(['a', 'a', 'unknown'])
  expect(jobs.size).toBe(1)
})

it('drops jobs when the step that releases their locks has succeeded, and keeps the others', async () => {
  const jobs = new HeldJobs()
  for (const id of ['a', 'b', 'c']) jobs.add(job(id))
  expect(await jobs.release(jobs.of(['a']), async () => true)).toBe(true)
  expect(await jobs.release(jobs.of(['b']), async () => false)).toBe(false)
  await expect(
    jobs.release(jobs.of(['c']), async () => {
      throw new Error('NOREPLICAS')
    }),
  ).rejects.toThrow('NOREPLICAS')
  expect(jobs.locked).toEqual([job('b'), job('c')])
})

it('does not renew the locks of jobs while a step that releases them is in flight', async () => {
  const jobs = new HeldJobs()
  for (const id of ['a', 'b']) jobs.add(job(id))
  const [a = job('')] = jobs.of(['a'])
  const step = Promise.withResolvers<boolean>()
  const released = jobs.release([a], () => step.promise)
  expect(jobs.locked).toEqual([job('b')])
  expect([jobs.isLocked(a), jobs.size]).toEqual([false, 2])
  step.resolve(false)
  await released
  expect([jobs.isLocked(a), jobs.locked.length]).toEqual([true, 2])
})

describe('the renewal of locks', () => {
  const LOCK_MS = 4_000

  type Renew = () => Promise<string[]>

  beforeEach(() => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
  })

  /** Holds jobs, and renews their locks with the given script. */
  function renewing(count: number, renew: Renew): { jobs: HeldJobs; warn: ReturnType<typeof vi.spyOn> } {
    const jobs = new HeldJobs()
    for (let n = 0; n < count; n += 1) jobs.add({ id: `job-${n}`, token: 'a-token' })
    const logger = createLogger('test', 'silent')
    // Only the stalled check has this argument.
    const call = async (...args: readonly unknown[]) => (args.includes(1_000_000_000) ? null : renew())
    const redis = { call } as unknown as RedisConnection
    const stop = keepLocks({ redis, names: queueNames('test'), lockDurationMs: LOCK_MS, logger }, jobs)
    onTestFinished(stop)
    return { jobs, warn: vi.spyOn(logger, 'warn') }
  }

  it('renews the locks four times within their duration, many of them in one run', async () => {
    const renew = vi.fn<Renew>(async () => [])
    const { warn } = renewing(300, renew)
    await vi.advanceTimersByTimeAsync(LOCK_MS)
    expect(renew).toHaveBeenCalledTimes(4 * 2)
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
})
