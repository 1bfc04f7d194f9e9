import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { unlessAborted } from '../src/unless-aborted.ts'

test('resolves or rejects like the promise, and leaves nothing at the signal', async () => {
  const { signal } = new AbortController()
  expect(await unlessAborted(Promise.resolve(1), signal)).toBe(1)
  await expect(unlessAborted(Promise.reject(new Error('failed')), signal)).rejects.toThrow('failed')
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

test('resolves when the signal is aborted, or was before', async () => {
  const abort = new AbortController()
  const waiting = unlessAborted(new Promise(() => undefined), abort.signal)
  abort.abort()
  expect(await waiting).toBe('aborted')
  expect(await unlessAborted(new Promise(() => undefined), abort.signal)).toBe('aborted')
})
