import { expect, test } from 'vitest'
import { Stop } from '../../src/delivery/stop.ts'
import { unlessStopped } from '../../src/delivery/unless-stopped.ts'

const never = new Promise(() => undefined)

test('resolves or rejects like the promise, and leaves no listener', async () => {
  const listeners = new Set<() => void>()
  const stop = {
    subscribe: (listener: () => void) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  expect(await unlessStopped(Promise.resolve(1), stop)).toBe(1)
  await expect(unlessStopped(Promise.reject(new Error('failed')), stop)).rejects.toThrow('failed')
  expect(listeners.size).toBe(0)
})

test('resolves at the stop, or if it was before', async () => {
  const stop = new Stop()
  const waiting = unlessStopped(never, stop)
  expect(stop.hasHappened).toBe(false)
  stop.happen()
  expect(await waiting).toBe('stopped')
  expect(stop.hasHappened).toBe(true)
  expect(await unlessStopped(never, stop)).toBe('stopped')
})
