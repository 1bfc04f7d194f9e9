import { describe, expect, it } from 'vitest'
import { Semaphore, TimeoutError, withTimeout } from '../src/promises.ts'

it('withTimeout settles like a promise that is in time, and rejects after the time', async () => {
  expect(await withTimeout(Promise.resolve(7), 60_000)).toBe(7)
  await expect(withTimeout(Promise.reject(new Error('x')), 60_000)).rejects.toThrow('x')
  const { promise, reject } = Promise.withResolvers<void>()
  const result = withTimeout(promise, 1_000, { sleep: async () => undefined })
  await expect(result).rejects.toThrow(TimeoutError)
  reject(new Error('too late, and ignored'))
})

describe('a semaphore', () => {
  it('runs tasks up to its limit, and the others in the order of their arrival', async () => {
    const semaphore = new Semaphore(2, new AbortController().signal)
    const started: number[] = []
    const ends = [0, 1, 2, 3].map(() => Promise.withResolvers<void>())
    const tasks = ends.map(({ promise }, i) =>
      semaphore.run(() => {
        started.push(i)
        return promise
      }),
    )
    expect(started).toEqual([0, 1])
    ends[1]?.resolve()
    await tasks[1]
    expect(started).toEqual([0, 1, 2])
    for (const { resolve } of ends) resolve()
    await Promise.all(tasks)
    expect(started).toEqual([0, 1, 2, 3])
  })

  it('is free again after a task that failed', async () => {
    const semaphore = new Semaphore(1, new AbortController().signal)
    await expect(semaphore.run(() => Promise.reject(new Error('x')))).rejects.toThrow('x')
    expect(await semaphore.run(async () => 'ran')).toBe('ran')
  })

  it('rejects tasks that wait or arrive after its signal, with the reason of the signal', async () => {
    const stopping = new AbortController()
    const semaphore = new Semaphore(1, stopping.signal)
    const { promise, resolve } = Promise.withResolvers<void>()
    const running = semaphore.run(() => promise)
    const waiting = semaphore.run(async () => undefined)
    stopping.abort(new Error('stopping'))
    await expect(waiting).rejects.toThrow('stopping')
    await expect(semaphore.run(async () => undefined)).rejects.toThrow('stopping')
    resolve()
    await running
  })
})
