import type { RedisConnection } from '@sluice/runtime'
import { EventEmitter } from 'node:events'
import { beforeEach, describe, expect, it } from 'vitest'
import { Dependencies, type DependencyCheck, redisDependency } from '../src/dependencies.ts'

let nowMs: number
let failures: Map<string, string | undefined>
let dependencies: Dependencies

beforeEach(() => {
  nowMs = 0
  failures = new Map([
    ['redis', undefined],
    ['shard 0', undefined],
    ['shard 1', undefined],
  ])
  dependencies = new Dependencies({
    checks: (): DependencyCheck[] => [...failures].map(([name, error]) => ({ name, failure: () => error })),
    monotonicMs: () => nowMs,
  })
})

describe('the states', () => {
  it('are shown for each dependency, with the seconds since they changed', () => {
    dependencies.check()
    nowMs = 10_000
    failures.set('shard 1', 'read ECONNRESET')
    dependencies.check()
    nowMs = 13_999
    expect(dependencies.status).toEqual([
      { name: 'redis', state: 'up', seconds: 13 },
      { name: 'shard 0', state: 'up', seconds: 13 },
      { name: 'shard 1', state: 'down', seconds: 3, lastError: 'read ECONNRESET' },
    ])
  })

  it('keep the last error after it has ended, and the time since then', () => {
    failures.set('redis', 'one')
    dependencies.check()
    nowMs = 5_000
    failures.set('redis', 'two')
    expect(dependencies.status[0]).toEqual({ name: 'redis', state: 'down', seconds: 5, lastError: 'two' })
    failures.set('redis', undefined)
    dependencies.check()
    nowMs = 7_000
    expect(dependencies.status[0]).toEqual({ name: 'redis', state: 'up', seconds: 2, lastError: 'two' })
  })

  it.each([
    [
      "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'me' 'secret'",
      "ERR unknown command 'HELLO'",
    ],
    ['connect redis://me:secret@host:1 failed', 'connect redis://host:1 failed'],
    ['x'.repeat(1_000), 'x'.repeat(200)],
  ])('show no password, and no long message: %j', (error, shown) => {
    failures.set('redis', error)
    expect(dependencies.status[0]?.lastError).toBe(shown)
  })
})

it('the connection to Redis fails while it is not open, with the last error of the connection', () => {
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
