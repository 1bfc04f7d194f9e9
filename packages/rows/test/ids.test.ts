import { expect, it } from 'vitest'
import { IdSource, idTimeMs } from '../src/ids.ts'

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

it('makes UUIDv7s that contain the time', () => {
  const id = new IdSource(() => 0x0123_4567_89ab).next()
  expect(id).toMatch(UUID_V7)
  expect(id.replaceAll('-', '').slice(0, 12)).toBe('0123456789ab')
  expect(idTimeMs(id)).toBe(0x0123_4567_89ab)
  expect(idTimeMs(new IdSource(() => 2 ** 48 - 1).next())).toBe(2 ** 48 - 1)
})

it('makes ids that sort by creation: within one millisecond, after the clock went back, as strings and as bytes', () => {
  const times = [1_000, 1_000, 1_001, 900, 900, 1_003]
  let calls = 0
  const source = new IdSource(() => times[Math.floor(calls++ / 3_000)] ?? 2_000)
  const ids = Array.from({ length: 20_000 }, () => source.next())
  expect(ids.toSorted()).toEqual(ids)
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids.every((id) => UUID_V7.test(id))).toBe(true)
})

it('makes different ids in processes that start at the same time', () => {
  const ids = Array.from({ length: 1_000 }, () => new IdSource(() => 1_000).next())
  expect(new Set(ids).size).toBe(ids.length)
})
