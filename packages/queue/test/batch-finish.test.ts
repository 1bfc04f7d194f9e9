import { plainRedis, type RedisConnection } from '@sluice/runtime'
import { expect, it, vi } from 'vitest'
import { batchFinisher } from '../src/batch-finish.ts'
import { HeldJobs } from '../src/held-jobs.ts'
import { queueNames } from '../src/queue-names.ts'

it('completes a job that was fetched again while its completion was in flight, with its new lock', async () => {
  const jobs = new HeldJobs()
  jobs.add({ id: 'a-chunk', token: 'a-token' })
  const finish = vi
    .fn<(...args: unknown[]) => Promise<number>>()
    .mockImplementationOnce(async () => {
      jobs.add({ id: 'a-chunk', token: 'another-token' })
      return 1
    })
    .mockResolvedValueOnce(1)
  const redis = { call: finish } as unknown as RedisConnection
  const finishBatch = batchFinisher(plainRedis(redis), queueNames('test'), jobs)
  expect(await finishBatch({ id: 'a-batch', members: ['a-chunk'] }, 0)).toBe(true)
  expect(finish.mock.calls.map((args) => args.includes('another-token'))).toEqual([false, true])
  expect(jobs.size).toBe(0)
})
