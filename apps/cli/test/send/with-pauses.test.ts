import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { withPauses } from '../../src/send/with-pauses.ts'

test('reports a pause once, and then the next value', async () => {
  const stream = new PassThrough({ objectMode: true })
  const values = withPauses(stream as AsyncIterable<string>, 20, () => true)
  stream.write('a')
  expect((await values.next()).value).toBe('a')
  expect(await values.next()).toEqual({ done: false, value: undefined })
  const next = values.next()
  stream.end('b')
  expect((await next).value).toBe('b')
  expect((await values.next()).done).toBe(true)
})

test('reports no pause if there is nothing to wait for', async () => {
  const stream = new PassThrough({ objectMode: true })
  const values = withPauses(stream as AsyncIterable<string>, 1, () => false)
  const next = values.next()
  setTimeout(() => stream.end('a'), 30)
  expect((await next).value).toBe('a')
})

test('throws what the values throw, also after a pause', async () => {
  const stream = new PassThrough({ objectMode: true })
  const values = withPauses(stream as AsyncIterable<string>, 10, () => true)
  expect((await values.next()).value).toBeUndefined()
  stream.destroy(new Error('broken'))
  await expect(values.next()).rejects.toThrow('broken')
})

test('closes the values when the consumer stops', async () => {
  const stream = new PassThrough({ objectMode: true })
  stream.write('a')
  for await (const value of withPauses(stream as AsyncIterable<string>, 10, () => false)) {
    expect(value).toBe('a')
    break
  }
  expect(stream.destroyed).toBe(true)
})
