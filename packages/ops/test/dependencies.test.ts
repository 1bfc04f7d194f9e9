import type { RedisConnection } from '@sluice/runtime'
import { EventEmitter } from 'node:events'
import { beforeEach, expect, it } from 'vitest'
import { dependencyCheck, redisFailure } from '../src/dependencies.ts'

let nowMs: number
let failures: Map<string, string | undefined>
let check: ReturnType<typeof dependencyCheck>

beforeEach(() => {
  nowMs = 0
  failures = new Map(['redis', 'shard 1'].map((name) => [name, undefined]))
  check = dependencyCheck(
    () => Object.fromEntries(failures),
    () => nowMs,
  )
})

it('shows the state of each dependency, with the seconds since it changed, and its last error also afterwards', () => {
  check()
  nowMs = 10_000
  failures.set('shard 1', 'one')
  check()
  nowMs = 13_999
  failures.set('shard 1', 'two')
  const redis = { name: 'redis', state: 'up' }
  const shard = { name: 'shard 1', lastError: 'two' }
  expect(check()).toEqual([
    { ...redis, seconds: 13 },
    { ...shard, state: 'down', seconds: 3 },
  ])
  failures.set('shard 1', undefined)
  check()
  nowMs = 16_000
  expect(check()).toEqual([
    { ...redis, seconds: 16 },
    { ...shard, state: 'up', seconds: 2 },
  ])
})

it.each([
  [
    "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'me' 'secret'",
    "ERR unknown command 'HELLO'",
  ],
  ['x'.repeat(1_000), 'x'.repeat(200)],
])('shows no password, and no long message: %j', (error, shown) => {
  failures.set('redis', error)
  expect(check()[0]?.lastError).toBe(shown)
})

it('the connection to Redis fails while it is not open, with the last error of the connection', () => {
  const redis = Object.assign(new EventEmitter(), { status: 'connecting' })
  const failure = redisFailure(redis as unknown as RedisConnection)
  expect(failure()).toBe('the connection to Redis is connecting')
  redis.status = 'ready'
  redis.emit('error', new Error('connect ECONNREFUSED'))
  expect(failure()).toBeUndefined()
  redis.status = 'reconnecting'
  expect(failure()).toBe('the connection to Redis is reconnecting: connect ECONNREFUSED')
})
