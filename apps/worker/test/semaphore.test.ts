import { describe, expect, it } from 'vitest'
import { Semaphore } from '../src/semaphore.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('Semaphore', () => {
  it('runs as many tasks at the same time as it has permits, and the others in order of arrival', async () => {
    const semaphore = new Semaphore(2, new AbortController().signal)
    const ends = [0, 1, 2, 3].map(() => Promise.withResolvers<void>())
    const started: number[] = []
    const done = ends.map(({ promise }, i) =>
      semaphore.run(async () => {
        started.push(i)
        await promise
        return i
      }),
    )
    await turn()
    expect(started).toEqual([0, 1])
    ends[1]?.resolve()
    await turn()
    expect(started).toEqual([0, 1, 2])
    for (const { resolve } of ends) resolve()
    expect(await Promise.all(done)).toEqual([0, 1, 2, 3])
    expect(started).toEqual([0, 1, 2, 3])
  })

  it('returns the permit of a task that fails', async () => {
    const semaphore = new Semaphore(1, new AbortController().signal)
    await expect(semaphore.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(await semaphore.run(async () => 'next')).toBe('next')
  })

  it('rejects waiting tasks when the process stops', async () => {
    const stopping = new AbortController()
    const semaphore = new Semaphore(1, stopping.signal)
    const first = Promise.withResolvers<void>()
    const running = semaphore.run(() => first.promise)
    const waiting = semaphore.run(async () => undefined)
    stopping.abort()
    await expect(waiting).rejects.toThrow('stopping')
    first.resolve()
    await running
  })

  it('starts no task after the process stops, even with a free permit', async () => {
    const stopping = new AbortController()
    const semaphore = new Semaphore(1, stopping.signal)
    stopping.abort()
    await expect(semaphore.run(async () => 'started')).rejects.toThrow('stopping')
  })
})
