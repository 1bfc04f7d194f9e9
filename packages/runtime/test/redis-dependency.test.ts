import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import type { RedisConnection } from '../src/redis.ts'
import { redisDependency } from '../src/redis-dependency.ts'

it('fails while the connection is not open, with the last error of the connection', () => {
  const redis = Object.assign(new EventEmitter(), { status: 'connecting' })
  const { name, failure } = redisDependency(redis as unknown as RedisConnection)
  expect(name).toBe('redis')
  expect(failure()).toBe('the connection to Redis is connecting')
  redis.status = 'ready'
  redis.emit('error', new Error('connect ECONNREFUSED'))
  expect(failure()).toBeUndefined()
  redis.status = 'reconnecting'
  expect(failure()).toBe('the connection to Redis is reconnecting: connect ECONNREFUSED')
})
