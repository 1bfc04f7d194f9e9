import { expect, it } from 'vitest'
import { HeldJobs } from '../src/held-jobs.ts'

const job = (id: string, token = 'a-token', bytes = 10) => ({ id, token, bytes })

it('counts jobs and bytes, each job once', () => {
  const jobs = new HeldJobs()
  expect(jobs.add(job('a'))).toBe(true)
  expect(jobs.add(job('b'))).toBe(true)
  expect(jobs.add(job('a', 'another-token'))).toBe(false)
  expect([jobs.size, jobs.bytes]).toEqual([2, 20])
  jobs.forget(['a', 'a', 'unknown'])
  expect([jobs.size, jobs.bytes]).toEqual([1, 10])
})

it('finds jobs in the order of the ids, with the token of the last fetch', () => {
  const jobs = new HeldJobs()
  for (const id of ['a', 'b', 'c']) jobs.add(job(id))
  jobs.add(job('a', 'another-token'))
  expect(jobs.of(['c', 'unknown', 'a'])).toEqual([job('c'), job('a', 'another-token')])
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

it('keeps a job that was fetched again while its lock was released', async () => {
  const jobs = new HeldJobs()
  jobs.add(job('a'))
  await jobs.release(jobs.of(['a']), async () => {
    jobs.add(job('a', 'another-token'))
    return true
  })
  expect(jobs.locked).toEqual([job('a', 'another-token')])
})
