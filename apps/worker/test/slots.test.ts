import { describe, expect, it } from 'vitest'
import { Slots } from '../src/slots.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('tasks', () => {
  it('run so many at once, the others in the order in which they came', async () => {
    const slots = new Slots(2, new AbortController().signal)
    const ends = [0, 1, 2, 3].map(() => Promise.withResolvers<void>())
    const begun: number[] = []
    const done = ends.map(({ promise }, i) =>
      slots.run(async () => {
        begun.push(i)
        await promise
        return i
      }),
    )
    await turn()
    expect(begun).toEqual([0, 1])
    ends[1]?.resolve()
    await turn()
    expect(begun).toEqual([0, 1, 2])
    for (const { resolve } of ends) resolve()
    expect(await Promise.all(done)).toEqual([0, 1, 2, 3])
    expect(begun).toEqual([0, 1, 2, 3])
  })

  it('make room when they fail', async () => {
    const slots = new Slots(1, new AbortController().signal)
    await expect(slots.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(await slots.run(async () => 'next')).toBe('next')
  })

  it('wait no more when they are not to', async () => {
    const stopping = new AbortController()
    const slots = new Slots(1, stopping.signal)
    const first = Promise.withResolvers<void>()
    const running = slots.run(() => first.promise)
    const waiting = slots.run(async () => undefined)
    stopping.abort()
    await expect(waiting).rejects.toThrow('stopping')
    first.resolve()
    await running
  })
})
