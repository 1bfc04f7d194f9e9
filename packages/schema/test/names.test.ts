import { describe, expect, it } from 'vitest'
import { redisNames, type RedisNames, shardNames } from '../src/names.ts'

/** What a Redis Cluster chooses a key's slot by. */
const tagOf = (key: string): string | undefined => /\{([^}]+)\}/.exec(key)?.[1]
const keysOf = (names: RedisNames): string[] => [
  names.queuePrefix,
  names.waitKey,
  names.jobKey('id'),
  names.chunkKey('id'),
  names.batchKey('id'),
  names.idempotencyKey('hash'),
]

describe('the names of shards', () => {
  it('are those of an installation without shards, where there is one', () => {
    const [only, ...others] = shardNames('sluice', 1)
    expect(others).toEqual([])
    expect(JSON.stringify(only)).toBe(JSON.stringify(redisNames('sluice')))
    expect(keysOf(redisNames('sluice'))).toEqual([
      '{sluice}',
      '{sluice}:logs:wait',
      '{sluice}:logs:id',
      '{sluice}:chunk:id',
      '{sluice}:batch:id',
      '{sluice}:idempotency:hash',
    ])
  })

  it('stay as they are when shards come or go', () => {
    expect(shardNames('a', 5).slice(0, 3).map(keysOf)).toEqual(shardNames('a', 3).map(keysOf))
  })

  it('are in one slot each, and in another one than those of the other shards', () => {
    const tags = shardNames('a', 4).map((names) => new Set(keysOf(names).map(tagOf)))
    for (const tag of tags) expect(tag.size).toBe(1)
    expect(tags.reduce((all, tag) => all.union(tag)).size).toBe(4)
  })
})
