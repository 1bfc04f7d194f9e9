import { expect, it } from 'vitest'
import { redisInfoField } from '../src/redis-info.ts'

const INFO =
  '# Memory\r\nused_memory:1234\r\nused_memory_human:1.21K\r\nmaxmemory_policy:noeviction\r\nempty:\r\n'

it.each([
  ['used_memory', '1234'],
  ['maxmemory_policy', 'noeviction'],
  ['memory', undefined],
  ['empty', undefined],
])('reads the field %s of INFO', (name, value) => {
  expect(redisInfoField(INFO, name)).toBe(value)
})
